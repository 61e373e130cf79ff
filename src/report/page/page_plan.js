// SPDX-License-Identifier: BSD-3-Clause
// What the planner thought best, what was done, and what an interval is worth.

// "local, 1 in 12 global": levels that every mark of them passes on to a higher one are left out.
function everyText(every) {
  const levels = LEVELS.filter(l => every && l in every);
  return levels.filter((l, i) => i + 1 === levels.length || every[levels[i + 1]] !== every[l])
    .map(l => every[l] === 1 ? l : `1 in ${every[l]} ${l}`).join(', ') || '–';
}

const line = (label, name, points, more = {}) => ({label, data: points, borderColor: css(name),
  backgroundColor: css(name), borderWidth: 2, pointRadius: 2.5, ...more});

function planConfig(run, marks) {
  const start = run.legs.length ? run.legs[0].began : run.created;
  const tuned = run.plan.tuned.slice(-MAX_MARKS);
  const end = Math.max(...tuned.map(t => t.time), ...marks.map(m => m.time)) - start;
  const steps = name => [...tuned.map(t => ({x: t.time - start, y: t[name], tuned: t})),
    ...(tuned.length ? [{x: end, y: tuned[tuned.length - 1][name]}] : [])];
  const values = [...marks.map(m => m.since), ...tuned.flatMap(t => [t.interval, t.better_interval])]
    .filter(v => v > 0);
  const wide = Math.max(...values) > 20 * Math.min(...values);
  return {type: 'line',
    data: {datasets: [
      line('set', 'encoded', steps('interval'), {stepped: true, keys: true}),
      line('thought best', 'global', steps('better_interval'), {stepped: true, borderDash: [5, 4],
        pointRadius: 0}),
      line('done', 'good', marks.map(m => ({x: m.time - start, y: m.since, mark: m})),
        {showLine: false, pointRadius: 3})]},
    options: {scales: {x: axis('since the run began', seconds, {type: 'linear', min: 0}),
      y: axis('', seconds, wide ? logAxis(seconds) : {beginAtZero: true})},
    plugins: {tooltip: {callbacks: {
      title: items => items[0].raw.mark ? `mark ${items[0].raw.mark.version}`
        : `after ${seconds(items[0].parsed.x)}`,
      label: planLines}}}}};
}

function planLines(item) {
  const {tuned, mark} = item.raw;
  const text = ` ${item.dataset.label}: ${seconds(item.parsed.y)}`;
  if (mark) return [text, ` ${levelsOf(mark).join(', ')}`];
  return tuned ? [text, ` ${everyText(tuned.every)}`, ` expected efficiency ${percent(tuned.efficiency)}`]
    : text;
}

function efficiencyConfig(p) {
  const point = (label, name, s, style) => line(label, name, [{x: s.interval, y: s.efficiency}],
    {showLine: false, pointRadius: 6, pointStyle: style});
  return {type: 'line',
    data: {datasets: [
      point('best', 'global', p.best, 'rectRot'), point('done', 'good', p.done, 'circle'),
      line('efficiency', 'accent', p.curve.map(([x, y]) => ({x, y})), {pointRadius: 0, keys: true,
        hitRadius: 8})]},
    options: {scales: {x: axis('interval', seconds, logAxis(seconds)),
      y: axis('', percent, {beginAtZero: false})},
    plugins: {tooltip: {callbacks: {title: items => seconds(items[0].parsed.x),
      label: item => ` ${item.dataset.label}: ${percent(item.parsed.y)}`}}}}};
}

// What is best on average need not be so through the few failures of one run.
function gainText(p) {
  if (p.took_done == null || p.took_best == null) return 'in the long run';
  const gain = 1 - p.took_best / p.took_done;
  return gain >= 0 ? `${percent(gain)} less time through the failures of this run`
    : `in the long run; through the failures of this run ${percent(-gain)} more time`;
}

// The model tells what to expect over a long time; of a run that went otherwise only what was measured
// is said.
const planCards = p => el('dl', {className: 'cards'},
  card('Done', seconds(p.done.interval), everyText(p.done.every)),
  p.fits ? card('Best', seconds(p.best.interval), everyText(p.best.every)) : null,
  card('Efficiency', percent(p.achieved), p.fits ? `the model gives ${percent(p.done.efficiency)} for it`
    : `as measured, over ${seconds(p.took)}`),
  p.fits ? card('At best', percent(p.best.efficiency), gainText(p)) : null);

const unfitText = p => `In ${seconds(p.took)} with ${p.failures} ` +
  `${p.failures === 1 ? 'failure' : 'failures'} this run went otherwise than its planner's model expects ` +
  'over a long time, so that nothing is said here of what would have been best.';

function planning({run, few}) {
  const {tuned, run: p} = run.plan;
  return section('plan', 'How often, and at which level',
    'The interval is the computing time from mark to mark. The planner goes towards what it thinks best ' +
    'step by step; what that rests on is what marks cost and how often the run failed.',
    p ? planCards(p) : null,
    p && !p.fits ? el('p', {className: 'remark'}, unfitText(p)) : null,
    el('div', {className: 'pictures'},
      tuned.length ? picture('chart-plan', 'The interval over time', planConfig(run, few), {legend:
        legend([['encoded', 'set'], ['global', 'thought best'], ['good', 'done', 'circle']])}) : null,
      p && p.fits ? picture('chart-efficiency', 'Expected efficiency around the best interval, with its levels',
        efficiencyConfig(p), {legend: legend([['accent', 'expected'], ['global', 'best', 'rectRot'],
          ['good', 'done, with its own levels', 'circle']])}) : null),
    tuned.length ? table('What the planner said', [
      words('time (UTC)', t => date(t.time)),
      numbers('set', seconds, t => t.interval),
      words('levels', t => everyText(t.every)),
      numbers('efficiency', percent, t => t.efficiency),
      numbers('thought best', seconds, t => t.better_interval),
      words('with levels', t => everyText(t.better_every)),
    ], tuned) : null,
    p && p.fits ? table('Around the best interval', [
      numbers('interval', seconds, ([x]) => x),
      numbers('efficiency', percent, ([, y]) => y),
    ], p.curve) : null);
}

sections.push({when: ({run}) => run.plan.tuned.length || run.plan.run, make: planning});
