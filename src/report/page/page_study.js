// SPDX-License-Identifier: BSD-3-Clause
// Studies of ensembles: what runners and server did, what failed, and how the filter fared.
const studySections = []; // as sections, of views that have a study

const rowsOf = study => {
  const runners = [...new Set(study.jobs.map(j => j.job).filter(j => j.startsWith('r')))]
    .sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)));
  return ['server', ...runners];
};

const rowOf = job => job.startsWith('s') ? 'server' : job;
const isLost = task => task.end && task.end !== 'done';

// As others draw particle filters: green from the cache, red from storage.
const hasCaches = study => study.tasks.some(t => t.parent_from);
const toneOfTasks = study => hasCaches(study) ? 'good' : 'work';
const toneInVain = study => hasCaches(study) ? 'encoded' : 'lost';

function ganttSets(study) {
  const since = t => t - study.began;
  const tasks = study.tasks.slice(-MAX_POINTS);
  const bar = (label, toneName, list, more = {}) => ({type: 'bar', label, data: list, grouped: false,
    backgroundColor: css(toneName), barPercentage: 0.7, borderSkipped: false, order: 2, ...more});
  const span = (from, to, y, item) => ({x: [since(from), since(to ?? study.ended)], y, item});
  return [
    {type: 'scatter', label: 'failures', order: 0, radius: 6, hoverRadius: 8, keys: true,
      pointStyle: 'crossRot', borderColor: css('lost'), borderWidth: 3,
      data: study.failures.map(f => ({x: since(f.at), y: rowOf(f.job), item: f}))},
    bar('propagating', toneOfTasks(study), tasks.filter(t => !isLost(t) && t.parent_from !== 'storage')
      .map(t => span(t.from, t.to, t.runner, t))),
    ...(!hasCaches(study) ? [] : [bar('from storage', 'lost',
      tasks.filter(t => !isLost(t) && t.parent_from === 'storage')
        .map(t => span(t.from, t.to, t.runner, t)))]),
    bar('in vain', toneInVain(study), tasks.filter(isLost).map(t => span(t.from, t.to, t.runner, t))),
    bar('updating', 'global', study.updates.slice(-MAX_POINTS).map(u => span(u.from, u.to, 'server', u))),
    bar('there', 'grid', study.jobs.map(j => span(j.began, j.ended, rowOf(j.job), j)),
      {order: 3, barPercentage: 0.9}),
  ];
}

function ganttLines({raw, dataset}) {
  const {item, x} = raw;
  if (dataset.label === 'failures') return [item.cause, `cost ${seconds(item.cost)}`];
  const took = seconds(x[1] - x[0]);
  if (dataset.label === 'there') return `${item.job}, for ${took}${item.how ? `: ${item.how}` : ''}`;
  if (dataset.label === 'updating') return `analysis of cycle ${item.cycle}: ${took}`;
  return `member ${item.member} of cycle ${item.cycle}, attempt ${item.attempt}: ${took}` +
    (isLost(item) ? `; ${item.end}` : '');
}

function gantt({study}) {
  const rows = rowsOf(study), length = Math.max(study.ended - study.began, 1e-3);
  const left = study.tasks_given - Math.min(study.tasks.length, MAX_POINTS);
  return section('gantt', 'Runners and server',
    'Which job was there when, and what it did.' + (left > 0 ? ` The first ${left} tasks are not shown.` : ''),
    picture('chart-gantt', 'Tasks of the runners, updates of the server', {
      data: {labels: rows, datasets: ganttSets(study)},
      options: {indexAxis: 'y',
        scales: {x: axis('since the study began', seconds, {type: 'linear', min: 0, max: length * 1.01,
          ticks: {includeBounds: false}, ...timeTicks(length)}),
          y: axis('', null, {type: 'category', labels: rows, offset: true, grid: {display: false}})},
        plugins: {tooltip: {callbacks: {title: items => items[0].raw.y, label: ganttLines}}}}},
      {height: `${Math.max(rows.length * 1.7 + 4, 10)}rem`,
        legend: legend([[toneOfTasks(study), hasCaches(study) ? 'propagating, the parent from the cache'
          : 'propagating'], ...(hasCaches(study) ? [['lost', 'propagating, the parent from storage']] : []),
          [toneInVain(study), 'in vain'], ['global', 'updating'],
          ['grid', 'there'], ...(study.failures.length ? [['lost', 'failure', 'crossRot']] : [])])}),
    table('The jobs', [words('job', j => j.job), words('began (UTC)', j => date(j.began)),
      numbers('for', seconds, j => (j.ended ?? study.ended) - j.began),
      words('end', j => j.how || 'running')], study.jobs));
}

function failures({study}) {
  return section('failures', 'Failures',
    'What was lost by each: the time of a task that has to be done again; for a server, the time until the ' +
    'next one gave its first task.',
    table('The failures', [words('at (UTC)', f => date(f.at)), words('job', f => f.job),
      {head: 'cycle', text: f => count(f.cycle), key: f => f.cycle ?? -1},
      {head: 'member', text: f => count(f.member), key: f => f.member ?? -1},
      {head: 'cause', left: true, wide: true, text: f => f.cause},
      {head: 'cost', text: f => seconds(f.cost), key: f => f.cost ?? -1}], study.failures, {open: true}));
}

function filterView({study}) {
  const list = study.updates.slice(-MAX_MARKS);
  const line = (label, toneName, key) => ({label, data: list.map(u => u[key]), borderColor: css(toneName),
    backgroundColor: css(toneName), borderWidth: 2, pointRadius: list.length > 100 ? 0 : 2.5, keys: true});
  return section('filter', 'The filter', 'Root mean squares over the observations of each cycle: how far they ' +
    'are from the mean of the background, and how far its members are from each other.',
    picture('chart-filter', 'Innovation and spread', {type: 'line',
      data: {labels: list.map(u => u.cycle), datasets: [line('innovation', 'accent', 'innovation'),
        line('spread', 'partner', 'spread')]},
      options: {interaction: {mode: 'index', intersect: false},
        scales: {x: axis('cycle', null, {grid: {display: false}}), y: axis('', round, {beginAtZero: true})}}},
      {legend: legend([['accent', 'innovation'], ['partner', 'spread']])}),
    table('The updates', [numbers('cycle', count, u => u.cycle), numbers('members', count, u => u.members),
      numbers('observations', count, u => u.observations),
      numbers('innovation', x => x == null ? '–' : round(x), u => u.innovation),
      numbers('spread', x => x == null ? '–' : round(x), u => u.spread),
      numbers('took', seconds, u => u.to - u.from), words('digest', u => u.digest)], study.updates));
}

// The particle filter: how many members still count, and what moving states has cost.
function particleView({study}) {
  const list = study.updates.slice(-MAX_MARKS);
  const line = (label, toneName, key, more = {}) => ({label, data: list.map(u => u[key]),
    borderColor: css(toneName), backgroundColor: css(toneName), borderWidth: 2,
    pointRadius: list.length > 100 ? 0 : 2.5, keys: true, ...more});
  const chart = (id, title, sets, tones) => picture(id, title, {type: 'line',
    data: {labels: list.map(u => u.cycle), datasets: sets},
    options: {interaction: {mode: 'index', intersect: false},
      scales: {x: axis('cycle', null, {grid: {display: false}}), y: axis('', round, {beginAtZero: true})}}},
  {legend: legend(tones)});
  const share = (u, key) => u[key] / Math.max(u.busy + u.waited + u.idle, 1e-12);
  const n = (head, key) => numbers(head, x => x == null ? '–' : count(x), u => u[key]);
  return section('particles', 'The particle filter', 'The effective sample size says how many members with equal ' +
    'weights would know as much. A load is a parent that a runner had to get from storage: no balanced plan of ' +
    'the cycle needs fewer than the lower bound, the plan at most S + B − 1, any cycle at most D + R − 1.',
    chart('chart-ess', 'Effective sample size', [line('effective sample size', 'accent', 'ess'),
      line('members', 'grid', 'members', {pointRadius: 0})],
    [['accent', 'effective sample size'], ['grid', 'members']]),
    chart('chart-loads', 'States loaded from storage', [line('loads', 'partner', 'loads'),
      line('lower bound', 'accent', 'bound', {borderDash: [4, 3], pointRadius: 0}),
      line('S + B − 1', 'work', 'most', {borderDash: [4, 3], pointRadius: 0})],
    [['partner', 'loads'], ['accent', 'lower bound'], ['work', 'S + B − 1']]),
    table('The cycles', [n('cycle', 'cycle'), numbers('ESS', x => x == null ? '–' : round(x), u => u.ess),
      words('then', u => u.resampled ? 'resampled' : 'carried on'), n('weight 0', 'zero'), n('tasks', 'tasks'),
      n('from the cache', 'hits'), n('loads', 'loads'), n('lower bound', 'bound'), n('S + B − 1', 'most'),
      n('D + R − 1', 'ever'), n('ahead', 'ahead'), n('steals', 'steals'), numbers('loaded', bytes, u => u.loaded_bytes),
      numbers('waited for storage', percent, u => share(u, 'waited')), numbers('idle', percent, u => share(u, 'idle')),
      numbers('took', seconds, u => u.to - u.from), words('digest', u => u.digest)], study.updates, {open: true}));
}

function studySummary(study) {
  const r = study.response, servers = study.jobs.filter(j => j.job.startsWith('s')).length;
  return el('dl', {className: 'cards'},
    card('Cycles', count(study.cycle), `began ${date(study.began)}`),
    card('Took', seconds(study.ended - study.began), plural(study.tasks_given, 'task')),
    card('Runners busy', percent(study.busy), 'of the time that they were there'),
    card('Answer of the server', r ? seconds(r.median) : '–',
      r ? `median; 90% within ${seconds(r.p90)}, longest ${seconds(r.longest)}` : ''),
    card('Failures', count(study.failures.length), plural(servers, 'server'), study.failures.length ? 'bad' : 'good'),
    card('In vain', seconds(study.lost_seconds), `of ${seconds(study.busy_seconds)} of runners`));
}

studySections.push({when: () => true, make: gantt},
  {when: ({study}) => study.failures.length, make: failures},
  {when: ({study}) => study.updates.some(u => u.ess != null), make: particleView},
  {when: ({study}) => study.updates.some(u => u.innovation != null), make: filterView});
