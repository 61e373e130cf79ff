// SPDX-License-Identifier: BSD-3-Clause
// What happened: legs, marks and failures on a line of time.
const pointStyles = {local: 'circle', partner: 'triangle', encoded: 'rect', global: 'rectRot'};

function legSpans(run) {
  const start = run.legs[0].began;
  const spans = {starting: [], working: [], lost: []};
  for (const l of run.legs) {
    const y = `leg ${l.leg}`;
    const marks = run.marks.filter(m => m.leg === l.leg);
    const end = l.ended ?? (marks.length ? marks[marks.length - 1].time : l.opened ?? l.began);
    const opened = l.opened === null ? end : l.opened + (l.resume_seconds || 0);
    const kept = Math.max(end - (l.lost_seconds || 0), Math.min(opened, end));
    if (opened > l.began) spans.starting.push({x: [l.began - start, opened - start], y, leg: l});
    if (kept > opened) spans.working.push({x: [opened - start, kept - start], y, leg: l});
    if (end > kept) spans.lost.push({x: [kept - start, end - start], y, leg: l});
  }
  return spans;
}

const span = run => Math.max(...run.legs.map(l => l.ended ?? l.began),
  ...run.marks.map(m => m.time)) - run.legs[0].began;

const isFailure = leg => leg.ended && !['finished', 'stopped'].includes(leg.end);

function timelineConfig(run, marks) {
  const start = run.legs[0].began;
  const spans = legSpans(run);
  const bar = (label, name) => ({type: 'bar', label, data: spans[name], grouped: false, order: 3,
    backgroundColor: css({starting: 'start', working: 'work', lost: 'lost'}[name]),
    barPercentage: 0.62, borderRadius: 3, borderSkipped: false});
  const points = {type: 'scatter', label: 'marks', order: 1, keys: true, hoverRadius: 8,
    radius: marks.map(m => (levelOf(m) === 'local' ? 4.5 : 6.5) * (marks.length > 200 ? 0.5 : 1)),
    data: marks.map(m => ({x: m.time - start, y: `leg ${m.leg}`, mark: m})),
    pointStyle: marks.map(m => pointStyles[levelOf(m)]),
    backgroundColor: marks.map(m => m.abandoned ? css('card') : css(levelOf(m))),
    borderColor: marks.map(m => m.abandoned ? css(levelOf(m)) : css('card')),
    borderWidth: marks.length > 200 ? 0.3 : 1};
  const failed = run.legs.filter(isFailure);
  const ends = {type: 'scatter', label: 'failures', order: 0, radius: 7, hoverRadius: 9,
    pointStyle: 'crossRot', borderColor: css('lost'), borderWidth: 3,
    data: failed.map(l => ({x: l.ended - start, y: `leg ${l.leg}`, leg: l}))};
  return {
    data: {labels: run.legs.map(l => `leg ${l.leg}`),
      datasets: [ends, points, bar('starting', 'starting'), bar('working', 'working'),
        bar('lost again', 'lost')]},
    options: {indexAxis: 'y',
      scales: {x: axis('since the run began', seconds, {type: 'linear', min: 0, max: span(run) * 1.01,
        ticks: {includeBounds: false}, ...timeTicks(span(run))}),
        y: axis('', null, {type: 'category', labels: run.legs.map(l => `leg ${l.leg}`),
          offset: true, grid: {display: false}})},
      plugins: {tooltip: {callbacks: {title: timelineTitle, label: timelineLines}}}}};
}

const timelineTitle = items => {
  const raw = items[0].raw;
  return raw.mark ? `mark ${raw.mark.version}` : `leg ${raw.leg.leg} on ${plural(raw.leg.ranks, 'rank')}`;
};

function timelineLines(item) {
  const {mark, leg, x} = item.raw;
  if (mark) return [`${levelsOf(mark).join(', ')}${mark.abandoned ? '; gone: the run went on from an earlier one' : ''}`,
    `${percent(share(mark))} of the blocks changed, ${bytes(mark.written)} written`,
    `held the program for ${seconds(mark.held)}`];
  if (!Array.isArray(x)) return leg.end;
  const text = {starting: 'starting and resuming', working: 'working', 'lost again': 'work that was lost'};
  return `${text[item.dataset.label]}: ${seconds(x[1] - x[0])}`;
}

function legTable(run) {
  return table('The legs', [
    numbers('leg', count, l => l.leg),
    words('began (UTC)', l => date(l.began)),
    numbers('ranks', count, l => l.ranks),
    {head: 'nodes', text: l => count(l.nodes), key: l => l.nodes ?? 0},
    {head: 'resumed mark', text: l => count(l.resumed), key: l => l.resumed ?? -1},
    {head: 'from', left: true, text: l => l.from ? Object.entries(l.from)
      .map(([level, f]) => `${level} ${f.blocks}`).join(', ') : '–'},
    {head: 'back after', text: l => seconds(l.restart_seconds), key: l => l.restart_seconds ?? -1},
    numbers('marks', count, l => l.marks),
    {head: 'lost', text: l => seconds(l.lost_seconds), key: l => l.lost_seconds ?? -1},
    words('end', l => l.end),
    {head: 'last lines', left: true, wide: true, key: l => l.output || '', text: l => l.output
      ? el('details', {}, el('summary', {}, 'show'), el('pre', {}, l.output)) : '–'},
  ], run.legs, {open: true});
}

function timeline({run, marks}) {
  const few = marks.slice(-MAX_POINTS);
  return section('timeline', 'What happened',
    'Each leg from its start to its end, with its marks. What lies between the last mark that the run ' +
    'went on with and the end of a leg was computed in vain.',
    picture('chart-timeline', 'Legs, marks and failures', timelineConfig(run, few), {
      height: `${Math.max(run.legs.length * 2.3 + 4, 8)}rem`,
      legend: legend([['start', 'starting and resuming'], ['work', 'working'], ['lost', 'lost'],
        ...(run.legs.some(isFailure) ? [['lost', 'failure', 'crossRot']] : []),
        ...LEVELS.filter(l => few.some(m => levelOf(m) === l)).map(l => [l, `mark, ${l}`, pointStyles[l]]),
        ...(few.some(m => m.abandoned) ? [['soft', 'mark that the run went back behind', 'hollow']] : [])])}),
    legTable(run));
}

sections.push({when: view => view.run.legs.length, make: timeline});
