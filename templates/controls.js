// Links open folds, a button switches between light and dark, and tables can be sorted. Pages also work without this script.
'use strict';
const $ = selector => document.querySelector(selector);
const all = selector => document.querySelectorAll(selector);

// Opens every fold around an element.
function unfold(element) {
  for (let fold = element?.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
}

function followLink() {
  const target = document.getElementById(location.hash.slice(1));
  unfold(target);
  target?.scrollIntoView();
}

addEventListener('hashchange', followLink);
if (location.hash) followLink();

// The page follows the system until the button is used.
const system = matchMedia('(prefers-color-scheme: dark)');
const scheme = $('#scheme');
let isDark;

function setDark(dark) {
  isDark = dark;
  scheme.textContent = dark ? 'Light' : 'Dark';
  dispatchEvent(new Event('resize'));
}

scheme.hidden = !CSS.supports('color: light-dark(red, red)');
scheme.onclick = () => {
  system.onchange = null;
  document.documentElement.style.colorScheme = isDark ? 'light' : 'dark';
  setDark(!isDark);
};
system.onchange = () => setDark(system.matches);
system.onchange();

for (const table of all('.sorted')) {
  const [body] = table.tBodies;
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];

  // Sort numbers largest first and names alphabetically; missing values come last.
  function sort(head, column) {
    const way = (head.ariaSort ?? (column || 'descending')) === 'descending' ? 1 : -1;
    const key = row => way * (column ? row.cells[column].dataset.value ?? way * Infinity : rows.indexOf(row));
    for (const other of heads) other.ariaSort = null;
    head.ariaSort = way > 0 ? 'ascending' : 'descending';
    body.append(...[...rows].sort((a, b) => key(a) - key(b)));
  }

  heads.forEach((head, column) => {
    if (!head.scope) return;
    const button = document.createElement('button');
    button.append(...head.childNodes);
    button.onclick = () => sort(head, column);
    head.append(button);
  });
}
