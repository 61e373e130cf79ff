// SPDX-License-Identifier: BSD-3-Clause
// What marks cost, and how often they were taken.
const byteStep = marks => 2 ** Math.floor(Math.log2(
  Math.max(...marks.map(m => Math.max(m.written, m.nbytes)), 8) / 4));

const levelSeconds = level => m => level in m.levels ? m.levels[level].seconds : null;

function costs({marks, few}) {
  const used = LEVELS.slice(1).filter(l => marks.some(m => l in m.levels));
  return section('costs', 'What marks cost',
    'Only "held" costs the program time; the rest happens behind its back.' + fewNote(marks, few),
    el('div', {className: 'pictures'},
      picture('chart-sizes', 'Written, against the size of the state', overMarks(few, [
        {label: 'written', tone: 'accent', value: m => m.written},
        {label: 'state', tone: 'soft', type: 'line', value: m => m.nbytes,
          more: {type: 'line', borderDash: [5, 4], pointRadius: 0}}], bytes,
      {y: {ticks: {stepSize: byteStep(few)}}})),
      picture('chart-held', 'The program was held for', overMarks(few, [
        {label: 'held', tone: 'lost', value: m => m.held}], seconds)),
      picture('chart-background', 'In the background', overMarks(few, [
        {label: 'stored', tone: 'local', value: m => m.stored},
        ...used.map(l => ({label: l, tone: l, value: levelSeconds(l)}))], seconds, {stacked: true}), {
        legend: legend([['local', 'stored locally'], ...used.map(l => [l, `raised to ${l}`])])}),
      intervalPicture(few)),
    table('The marks', [
      numbers('mark', count, m => m.version),
      words('time (UTC)', m => date(m.time)),
      numbers('leg', count, m => m.leg),
      numbers('state', bytes, m => m.nbytes),
      numbers('blocks', count, m => m.blocks),
      numbers('changed', count, m => m.changed),
      numbers('share', percent, share),
      numbers('written', bytes, m => m.written),
      numbers('held', seconds, m => m.held),
      numbers('stored in', seconds, m => m.stored),
      ...used.map(l => ({head: `${l} in`, text: m => seconds(levelSeconds(l)(m)),
        key: m => levelSeconds(l)(m) ?? -1})),
      {head: 'planned', text: m => m.interval ? seconds(m.interval) : '–', key: m => m.interval || 0},
      numbers('since', seconds, m => m.since),
      {head: 'levels', left: true, key: levelOf, text: m => el('span', {},
        ...levelsOf(m).map(l => el('span', {className: 'badge', style: tone(l)}, l)))},
      {head: 'failed', left: true, wide: true, key: m => m.failed.length,
        text: m => m.failed.map(f => f.text).join('; ') || '–'},
    ], marks, {dim: m => m.abandoned}));
}

function intervalPicture(marks) {
  const planned = m => m.interval || null;
  const top = Math.max(...marks.map(m => m.since), 1e-6);
  const wide = Math.max(...marks.map(m => planned(m) || 0)) > 20 * top;
  return picture('chart-interval', 'From mark to mark: what the planner thought best, and what was done',
    overMarks(marks, [
      {label: 'planned', tone: 'encoded', type: 'line', value: planned,
        more: {stepped: true, pointRadius: 0, spanGaps: true}},
      {label: 'done', tone: 'good', type: 'line', value: m => m.since, more: {}}], seconds,
    {type: 'line', y: wide ? logAxis(seconds) : {}}),
    {legend: legend([['encoded', 'planned'], ['good', 'done']])});
}

sections.push({when: view => view.few.length, make: costs});
