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
      {head: 'mark', text: m => count(m.version), key: m => m.version},
      {head: 'time (UTC)', left: true, text: m => date(m.time)},
      {head: 'leg', text: m => count(m.leg), key: m => m.leg},
      {head: 'state', text: m => bytes(m.nbytes), key: m => m.nbytes},
      {head: 'blocks', text: m => count(m.blocks), key: m => m.blocks},
      {head: 'changed', text: m => count(m.changed), key: m => m.changed},
      {head: 'share', text: m => percent(share(m)), key: share},
      {head: 'written', text: m => bytes(m.written), key: m => m.written},
      {head: 'held', text: m => seconds(m.held), key: m => m.held},
      {head: 'stored in', text: m => seconds(m.stored), key: m => m.stored},
      ...used.map(l => ({head: `${l} in`, text: m => seconds(levelSeconds(l)(m)),
        key: m => levelSeconds(l)(m) ?? -1})),
      {head: 'planned', text: m => m.interval ? seconds(m.interval) : '–', key: m => m.interval || 0},
      {head: 'since', text: m => seconds(m.since), key: m => m.since},
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
