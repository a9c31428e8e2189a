// The button for light and dark, and tables sorted by a column. Without this script a page has neither.
'use strict';
{
const scheme = document.querySelector('#scheme'), system = matchMedia('(prefers-color-scheme: dark)');
const rules = [...document.styleSheets].flatMap(({cssRules}) => [...cssRules]);
const asked = rules.flatMap(({media}) => media?.mediaText.includes('-scheme') ? [[media, media.mediaText]] : []);
let chosen;

// What is asked of the system is put as a width that every screen has, or none.
function colours() {
 const dark = chosen ?? system.matches;
 if (scheme) scheme.textContent = dark ? 'Light' : 'Dark';
 if (chosen === undefined) return;
 for (const [media, text] of asked) {
  media.mediaText = text.replace(/\(prefers-color-scheme:\s*(\w+)\)/g, (all, name) => `(min-width: ${dark === (name === 'dark') ? 0 : 1e6}px)`);
 }
 document.documentElement.style.colorScheme = dark ? 'dark' : 'light';
 dispatchEvent(new Event('resize'));
}

// a page of a template of one's own may have no such button
if (scheme) {
 scheme.hidden = !asked.length;
 scheme.onclick = () => {
  chosen = !(chosen ?? system.matches);
  colours();
 };
}
system.addEventListener('change', colours);
colours();

for (const table of document.querySelectorAll('.sorted')) {
 const [body] = table.tBodies, rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
 heads.forEach((head, column) => {
  if (!head.scope) return;
  const button = document.createElement('button');
  button.append(...head.childNodes);
  head.append(button);
  // the largest first, names in their order; what was not recorded stays at the end
  button.onclick = () => {
   const way = (head.ariaSort ?? (column || 'descending')) === 'descending' ? 1 : -1;
   const key = (row) => column ? way * (row.cells[column].dataset.value ?? way * Infinity) : way * rows.indexOf(row);
   for (const other of heads) other.ariaSort = null;
   head.ariaSort = way > 0 ? 'ascending' : 'descending';
   body.append(...[...rows].sort((a, b) => key(a) - key(b)));
  };
 });
}
}
