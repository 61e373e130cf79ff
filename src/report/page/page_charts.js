// SPDX-License-Identifier: BSD-3-Clause
// Pictures: what all of them have in common.
let charts = []; // that are on the page now

const css = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
const mix = (a, b, t) => `rgb(${rgb(a).map((x, i) => Math.round(x + (rgb(b)[i] - x) * t))})`;
const hasCharts = () => typeof Chart !== 'undefined';

function setDefaults() {
  Object.assign(Chart.defaults, {animation: false, maintainAspectRatio: false, color: css('soft'),
    borderColor: css('grid')});
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  Chart.defaults.plugins.legend.display = false;
  Object.assign(Chart.defaults.plugins.tooltip, {backgroundColor: css('ink'), titleColor: css('card'),
    bodyColor: css('card'), padding: 9, cornerRadius: 6, boxPadding: 4});
}

// Arrow keys go from point to point of the first dataset that has any; Escape leaves.
function addKeys(canvas, chart) {
  let at = -1;
  canvas.addEventListener('keydown', event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    const which = chart.data.datasets.findIndex(d => d.keys && d.data.length);
    const set = which < 0 ? 0 : which;
    const points = chart.getDatasetMeta(set).data;
    if (event.key === 'Escape') at = -1;
    else if (step && points.length) at = (at + step + points.length) % points.length;
    else return;
    event.preventDefault();
    const active = at < 0 ? [] : [{datasetIndex: set, index: at}];
    chart.setActiveElements(active);
    chart.tooltip.setActiveElements(active, at < 0 ? {x: 0, y: 0} : points[at].getCenterPoint());
    chart.update();
  });
}

function picture(id, caption, config, {height, legend: items} = {}) {
  if (!hasCharts()) return el('figure', {}, el('figcaption', {}, caption),
    el('p', {}, 'Cairn was built without a charting library: see the table.'));
  const canvas = el('canvas', {id, tabIndex: 0, role: 'img',
    'aria-label': `${caption}. Arrow keys tell one point after the other.`});
  const box = el('div', {className: height ? 'canvas tall' : 'canvas'}, canvas);
  if (height) box.style.setProperty('--tall', height);
  const figure = el('figure', {}, el('figcaption', {}, caption), box, items || null);
  queueMicrotask(() => {
    const chart = new Chart(canvas, config);
    addKeys(canvas, chart);
    charts.push(chart);
  });
  return figure;
}

const axis = (text, format, more = {}) => ({
  title: {display: Boolean(text), text}, grid: {color: css('grid')}, ...more,
  ticks: {maxRotation: 0, autoSkipPadding: 12, ...(format ? {callback: v => format(v)} : {}),
    ...more.ticks}});

// Ticks of a logarithmic axis, without the crowd between 1, 2 and 5.
const logAxis = format => ({type: 'logarithmic', beginAtZero: false, ticks: {
  callback: v => /^[125]e/.test(Number(v).toExponential(0)) &&
    Math.abs(Number(Number(v).toExponential(0)) / v - 1) < 1e-6 ? format(v) : null}});

// At most eight ticks, in steps that people count time in.
function timeTicks(top) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    86400, 172800, 604800];
  const step = steps.find(s => top / s <= 8);
  if (top < 2 || !step) return {};
  return {afterBuildTicks: scale => {
    scale.ticks = Array.from({length: Math.floor(top / step) + 1}, (_, i) => ({value: i * step}));
  }};
}

const markAxis = more => axis('mark', null, {grid: {display: false}, ...more});

// Bars or lines over marks: sets of {label, tone, value(mark), ...}.
function overMarks(marks, sets, format, more = {}) {
  return {
    type: more.type || 'bar',
    data: {labels: marks.map(m => m.version), datasets: sets.map(s => ({
      label: s.label, data: marks.map(s.value), backgroundColor: css(s.tone),
      borderColor: css(s.tone), borderWidth: s.type === 'line' ? 2 : 0,
      pointRadius: marks.length > 100 ? 0 : 2.5,
      categoryPercentage: 0.9, barPercentage: 0.95, keys: true, ...s.more}))},
    options: {
      interaction: {mode: 'index', intersect: false},
      scales: {x: markAxis({stacked: more.stacked}),
        y: axis(more.title, format, {beginAtZero: true, stacked: more.stacked, ...more.y})},
      plugins: {tooltip: {callbacks: {
        title: items => `mark ${items[0].label}`,
        label: item => ` ${item.dataset.label}: ${format(item.parsed.y)}`}}}}};
}

// --- heat maps: bars that are all one high, and coloured by a share -----------------------------

// What row r of n stands for among so many ranks: one, or a group of neighbours.
const firstOf = (r, n, nranks) => Math.ceil(r * nranks / n);

function rankName(r, n, nranks) {
  if (n === 1) return nranks > 1 ? 'all ranks' : 'rank 0';
  return nranks > n ? `ranks ${firstOf(r, n, nranks)} to ${firstOf(r + 1, n, nranks) - 1}` : `rank ${r}`;
}

function heatColors() {
  const low = css('grid'), high = css('accent');
  return x => x == null ? 'transparent' : mix(low, high, Math.sqrt(x));
}

function heatScale(from, to) {
  const color = heatColors();
  const bar = el('span', {className: 'scale', style: {background:
    `linear-gradient(90deg, ${[0, .1, .25, .5, 1].map(x => `${color(x)} ${100 * x}%`)})`}});
  return el('ul', {className: 'legend'}, el('li', {}, from, bar, to));
}

const heatAxis = (rows, nranks, text = 'rank') => ({
  stacked: true, reverse: true, max: rows, grid: {display: false},
  title: {display: rows > 1, text},
  afterBuildTicks: scale => { // in the middle of each row, not at its edge
    scale.ticks = Array.from({length: rows}, (_, r) => ({value: r + 0.5}));
  },
  ticks: {display: rows > 1, callback: v => String(firstOf(Math.floor(v), rows, Math.max(nranks, rows)))}});
