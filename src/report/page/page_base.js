// SPDX-License-Identifier: BSD-3-Clause
// The page's program, of which this comes first: words for numbers, elements, tables, and the list of
// sections. Everything that is shown is text, never markup, and nothing is fetched.
const data = JSON.parse(document.getElementById('data').textContent);
const LEVELS = ['local', 'partner', 'encoded', 'global'];
const TONES = ['accent', 'global', 'partner', 'encoded', 'lost', 'good'];
const MAX_MARKS = 400; // in a picture: the newest ones; tables have all
const MAX_POINTS = 2000; // on the line of time, likewise
const MAX_ROWS = 200; // of a table, unless asked for more

// What is shown, in this order: {when(view), make(view)}, where a view has the run, those of its
// marks that are to be shown, and the newest few of them for pictures. To add a section, write a file
// that puts it here, and name that file in CMakeLists.txt.
const sections = [];

// --- words -------------------------------------------------------------------------------------

const round = (x, digits = 3) => Number(x.toPrecision(digits)).toString();

function bytes(n) {
  if (n == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${round(n)} ${units[i]}`;
}

function seconds(s) {
  if (s == null) return '–';
  if (s === 0) return '0 s';
  const [factor, unit] = s < 1e-3 ? [1e6, 'µs'] : s < 1 ? [1e3, 'ms'] : s < 120 ? [1, 's']
    : s < 7200 ? [1 / 60, 'min'] : s < 172800 ? [1 / 3600, 'h'] : [1 / 86400, 'd'];
  return `${round(s * factor)} ${unit}`;
}

const percent = x => x == null ? '–' : `${(100 * x).toFixed(1)} %`;
const count = n => n == null ? '–' : String(n);
const date = t => t == null ? '–' : new Date(t * 1000).toISOString().slice(0, 19).replace('T', ' ');
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const sum = (list, f) => list.reduce((total, item) => total + (f(item) || 0), 0);
const share = m => m.blocks ? m.changed / m.blocks : 0;

// --- elements ----------------------------------------------------------------------------------

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === 'style') for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child != null));
  return node;
}

const tone = name => ({'--tone': `var(--${name})`});

function legend(items) {
  return el('ul', {className: 'legend'}, ...items.map(([name, text, shape = '']) =>
    el('li', {}, el('i', {className: shape, style: tone(name)}), text)));
}

const toggled = new Set(); // tables that the reader has opened or closed, which stay so

// Columns of a table: of numbers, each shown by a function of its own; of words.
const numbers = (head, show, key) => ({head, text: row => show(key(row)), key});
const words = (head, text, key = text) => ({head, text, key, left: true});

// A table whose columns sort: {head, text(row), key(row), left, wide}; open: shown from the start.
// It is filled when it is opened, and at first with no more rows than anyone reads.
function table(caption, columns, rows, {open = false, dim = () => false} = {}) {
  const body = el('tbody');
  const sorted = {column: -1, up: true};
  let most = MAX_ROWS;
  const more = el('button', {type: 'button', className: 'more', hidden: rows.length <= MAX_ROWS},
    `Show all ${rows.length} rows`);
  const fill = () => {
    const list = [...rows];
    const column = columns[sorted.column];
    if (column) {
      const key = column.key || column.text;
      list.sort((a, b) => {
        const x = key(a), y = key(b);
        return (x < y ? -1 : x > y ? 1 : 0) * (sorted.up ? 1 : -1);
      });
    }
    body.replaceChildren(...list.slice(0, most).map(row => el('tr', {className: dim(row) ? 'gone' : ''},
      ...columns.map(c => {
        const value = c.text(row);
        return el('td', {className: (c.left ? 'l' : '') + (c.wide ? ' wide' : '')},
          value == null ? '–' : value);
      }))));
  };
  const heads = columns.map((c, i) => {
    const button = el('button', {type: 'button'}, c.head);
    const th = el('th', {scope: 'col', className: c.left ? 'l' : ''}, button);
    button.addEventListener('click', () => {
      sorted.up = sorted.column === i ? !sorted.up : true;
      sorted.column = i;
      heads.forEach(h => h.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', sorted.up ? 'ascending' : 'descending');
      fill();
    });
    return th;
  });
  more.addEventListener('click', () => {
    most = Infinity;
    more.hidden = true;
    fill();
  });
  const details = el('details', {open: open !== toggled.has(caption)}, el('summary', {}, `${caption} (${rows.length})`),
    el('div', {className: 'table', tabIndex: 0, role: 'region', 'aria-label': caption},
      el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body)), more);
  if (details.open) fill();
  details.addEventListener('toggle', () => {
    if (details.open && !body.rows.length) fill();
    if (details.open === open) toggled.delete(caption); else toggled.add(caption);
  });
  return details;
}
