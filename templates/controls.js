// Folds that links open, the button for light and dark, and tables sorted by a column. Without this script a page is
// whole.
'use strict';
const $ = selector => document.querySelector(selector);
const all = selector => document.querySelectorAll(selector);

// Opens every fold that an element lies in.
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

{
  const scheme = $('#scheme') ?? {};
  const system = matchMedia('(prefers-color-scheme: dark)');
  const rules = [...document.styleSheets].flatMap(({cssRules}) => [...cssRules])
    .filter(({media}) => media?.mediaText.includes('-scheme'))
    .map(({media}) => ({media, text: media.mediaText}));
  let isDark;

  function setColours(dark) {
    isDark = dark;
    scheme.textContent = dark ? 'Light' : 'Dark';
    dispatchEvent(new Event('resize'));
  }

  scheme.hidden = !rules.length;
  // The system is followed until the button is used. Then what is asked of it becomes a width that every screen has,
  // or none.
  scheme.onclick = () => {
    system.onchange = null;
    for (const {media, text} of rules) {
      const width = query => `(${query.includes('dark') === isDark ? 'max' : 'min'}-width:0)`;
      media.mediaText = text.replace(/\(prefers.*?\)/g, width);
    }
    setColours(!isDark);
  };
  system.onchange = () => setColours(system.matches);
  system.onchange();
}

for (const table of all('.sorted')) {
  const [body] = table.tBodies, rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.scope) return;
    const button = document.createElement('button');
    button.append(...head.childNodes);
    head.append(button);
    // The largest first, names in their order; what was not recorded stays at the end.
    button.onclick = () => {
      const way = (head.ariaSort ?? (column || 'descending')) === 'descending' ? 1 : -1;
      const key = row => way * (column ? row.cells[column].dataset.value ?? way * Infinity : rows.indexOf(row));
      for (const other of heads) other.ariaSort = null;
      head.ariaSort = way > 0 ? 'ascending' : 'descending';
      body.append(...[...rows].sort((a, b) => key(a) - key(b)));
    };
  });
}
