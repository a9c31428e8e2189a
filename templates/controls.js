// The button for light and dark, and tables sorted by a column. Without this script a page has neither; a template of
// one's own may have no button.
'use strict';
const $ = selector => document.querySelector(selector), all = selector => document.querySelectorAll(selector);
{
const scheme = $('#scheme') ?? {}, system = matchMedia('(prefers-color-scheme: dark)');
const asked = [...document.styleSheets].flatMap(({cssRules}) => [...cssRules])
 .flatMap(({media}) => media?.mediaText.includes('-scheme') ? [[media, media.mediaText]] : []);
let dark;

function colours(now) {
 dark = now;
 scheme.textContent = dark ? 'Light' : 'Dark';
 dispatchEvent(new Event('resize'));
}

scheme.hidden = !asked.length;
// the system is followed until then; what is asked of it becomes a width that every screen has, or none
scheme.onclick = () => {
 system.onchange = null;
 for (const [media, text] of asked) {
  media.mediaText = text.replace(/\(prefers.*?\)/g, each => `(${each.includes('dark') === dark ? 'max' : 'min'}-width:0)`);
 }
 colours(!dark);
};
(system.onchange = () => colours(system.matches))();

for (const table of all('.sorted')) {
 const [body] = table.tBodies, rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
 heads.forEach((head, column) => {
  if (!head.scope) return;
  const button = document.createElement('button');
  button.append(...head.childNodes);
  head.append(button);
  // the largest first, names in their order; what was not recorded stays at the end
  button.onclick = () => {
   const way = (head.ariaSort ?? (column || 'descending')) === 'descending' ? 1 : -1;
   const key = row => way * (column ? row.cells[column].dataset.value ?? way * Infinity : rows.indexOf(row));
   for (const other of heads) other.ariaSort = null;
   head.ariaSort = way > 0 ? 'ascending' : 'descending';
   body.append(...[...rows].sort((a, b) => key(a) - key(b)));
  };
 });
}
}
