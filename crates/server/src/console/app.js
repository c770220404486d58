// The console: what one replica does, and what an operator may do about it (protocol.md 12).
//
// An overview says where everything stands; the feed says what happens behind it. Numbers that change with every event are in
// neither, so the overview is asked for again every two seconds while somebody looks. All text from outside becomes text of a
// node and never markup.

const EVERY = 2000;
const SAMPLES = 40;
const TURNS = 200;

const $ = (id) => document.getElementById(id);

// --- Asking ---------------------------------------------------------------------------------------------------------------

let token = sessionStorage.getItem('streamweld-token');

class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the answer is ${status}`);
    this.status = status;
    this.code = error?.code;
    this.gates = error?.gates;
  }
}

async function ask(method, path, { headers = {}, signal } = {}) {
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, { method, headers, signal, cache: 'no-store', redirect: 'error' });
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) login(token ? 'This is not the token.' : '');
  throw new Refused(answer.status, body.error);
}

const json = async (method, path) => (await ask(method, path)).json();

function login(fault) {
  $('login-fault').textContent = fault;
  if (!$('login').open) $('login').showModal();
}

$('login').addEventListener('cancel', (event) => event.preventDefault());
$('login-form').addEventListener('submit', (event) => {
  event.preventDefault();
  token = $('token').value;
  $('token').value = '';
  sessionStorage.setItem('streamweld-token', token);
  $('login').close();
  begin();
});

// --- What is known --------------------------------------------------------------------------------------------------------

const streams = new Map();
const totals = { running: [], rate: [] };
let backends = [];
let looked = 0;

/** Takes an overview: what it does not have is over, unless the feed has told of it since. */
function take(overview) {
  const now = performance.now();
  const passed = (now - looked) / 1000;
  const there = new Set();
  let rate = 0;
  let readers = 0;
  for (const stream of overview.streams) {
    there.add(stream.stream_id);
    const known = streams.get(stream.stream_id);
    const rates = known?.rates ?? [];
    if (looked && known?.last_seq !== undefined) {
      const came = Math.max(0, (stream.last_seq - known.last_seq) / passed);
      rates.push(came);
      rate += came;
    }
    streams.set(stream.stream_id, { ...stream, rates: rates.slice(-SAMPLES) });
    readers += stream.readers;
  }
  for (const [id, stream] of streams) {
    if (!there.has(id) && stream.last_seq !== undefined) streams.delete(id);
  }
  backends = overview.backends;
  if (looked) totals.rate = [...totals.rate, rate].slice(-SAMPLES);
  totals.running = [...totals.running, overview.running].slice(-SAMPLES);
  looked = now;
  $('running').textContent = overview.running;
  $('rate').textContent = totals.rate.length ? round(rate) : '–';
  $('readers').textContent = readers;
  draw($('running-line'), totals.running);
  draw($('rate-line'), totals.rate);
  showJournal(overview.journal);
  if (!overview.ready) link('leaving', 'leaving');
  showBackends();
  showStreams();
}

/** Takes a turn of the feed. */
function turn(what, data) {
  const id = data.stream_id;
  const stream = streams.get(id);
  switch (what) {
    case 'created':
      if (!stream) {
        streams.set(id, {
          stream_id: id, model: data.model, backend: data.backend, created_at: data.time,
          durability: data.durability, readers: undefined, migrations: 0, rates: [],
        });
      }
      break;
    case 'migrated':
      if (stream) Object.assign(stream, { backend: data.to, migrations: (stream.migrations ?? 0) + 1 });
      break;
    case 'degraded':
      if (stream) stream.durability = 'degraded';
      break;
    case 'healed':
      if (stream) stream.durability = 'durable';
      break;
    case 'ended':
    case 'left':
      streams.delete(id);
      break;
  }
  showTurn(what, data);
}

// --- Following ------------------------------------------------------------------------------------------------------------

let following;

/** Follows the feed for ever, from an overview on, and from where it was after each break. */
async function begin() {
  following?.abort();
  const { signal } = (following = new AbortController());
  let cursor;
  for (let failures = 0; !signal.aborted; ) {
    try {
      if (!cursor) {
        const overview = await json('GET', '/admin/overview');
        looked = 0;
        streams.clear();
        take(overview);
        cursor = overview.cursor;
      }
      const answer = await ask('GET', '/admin/watch', { headers: { 'last-event-id': cursor }, signal });
      link('live', 'live');
      failures = 0;
      for await (const event of events(answer.body)) {
        turn(event.type, JSON.parse(event.data));
        cursor = event.id;
        later(showStreams);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status === 401) return link('away', 'needs the admin token');
      // What happened meanwhile is not told any more, or this is another process: begin again.
      if (error instanceof Refused && error.status === 410) cursor = undefined;
    }
    if (signal.aborted) return;
    link('away', 'out of reach, asking again');
    await new Promise((go) => setTimeout(go, Math.min(500 * 2 ** failures++, 5000)));
  }
}

/** The events of a text/event-stream body. */
async function* events(body) {
  const text = body.pipeThrough(new TextDecoderStream());
  let left = '';
  for await (const piece of parts(text)) {
    left += piece;
    for (let end; (end = left.indexOf('\n\n')) >= 0; left = left.slice(end + 2)) {
      const event = {};
      for (const line of left.slice(0, end).split('\n')) {
        const [, name, value] = /^(event|data|id): ?(.*)$/.exec(line) ?? [];
        if (name) event[name === 'event' ? 'type' : name] = value;
      }
      if (event.data) yield event;
    }
  }
}

/** A stream's pieces. Not every browser iterates over one by itself. */
async function* parts(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function look() {
  if (document.visibilityState === 'visible' && looked) {
    try {
      take(await json('GET', '/admin/overview'));
    } catch {
      // The feed says that it is away.
    }
  }
  setTimeout(look, EVERY);
}

// --- Showing --------------------------------------------------------------------------------------------------------------

const TONES = {
  up: 'good', starting: 'warn', quarantined: 'warn', draining: 'warn', down: 'bad',
  durable: 'good', degraded: 'bad',
  done: 'good', error: 'bad', stopped: 'warn', migrated: 'warn', healed: 'good', left: 'warn',
};

function link(state, text) {
  $('link').dataset.state = state;
  $('link').textContent = text;
}

let due = new Set();
/** Once for all that comes within one frame. */
function later(show) {
  if (due.has(show)) return;
  due.add(show);
  requestAnimationFrame(() => {
    due.delete(show);
    show();
  });
}

function element(name, { text, className, ...rest } = {}, ...children) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  Object.assign(made.dataset, rest.data ?? {});
  if (rest.title) made.title = rest.title;
  made.append(...children);
  return made;
}

const pill = (text) => element('span', { text, className: 'pill', data: { tone: TONES[text] ?? 'mute' } });

const round = (rate) => (rate >= 100 ? Math.round(rate) : Math.round(rate * 10) / 10).toString();

function age(time) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

function size(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}

/** A line through these values, as high as the greatest. */
function draw(svg, values) {
  const most = Math.max(1, ...values);
  const points = values.map((value, at) => `${SAMPLES - values.length + at} ${(1 - value / most).toFixed(3)}`);
  svg.setAttribute('viewBox', `0 -0.05 ${SAMPLES - 1} 1.1`);
  svg.setAttribute('preserveAspectRatio', 'none');
  let path = svg.firstElementChild;
  if (!path) {
    path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    svg.append(path);
  }
  path.setAttribute('d', points.length > 1 ? `M${points.join('L')}` : '');
}

function showJournal(journal) {
  $('journal').textContent = size(journal.bytes);
  $('journal-use').value = journal.bytes / journal.total;
  const level = journal.level ? `, ${journal.level}` : '';
  const wrong = journal.wrong.length ? `; wrong: ${journal.wrong.join(', ')}` : '';
  $('journal-note').textContent =
    `${journal.kind}${level}; of ${size(journal.total)}, ${journal.live} live, ${journal.finished} finished${wrong}`;
  $('journal-note').classList.toggle('fault', journal.wrong.length > 0);
}

const rows = { streams: new Map(), backends: new Map() };

/** Rows in this order, each made once and changed in place, so that a row under the pointer stays. */
function table(name, items, key, make, fill) {
  const body = $(name).tBodies[0];
  const known = rows[name];
  const there = new Set();
  let at = body.firstElementChild;
  for (const item of items) {
    const id = key(item);
    there.add(id);
    let row = known.get(id);
    if (!row) {
      row = make(item);
      known.set(id, row);
    }
    fill(row, item);
    if (row === at) at = at.nextElementSibling;
    else body.insertBefore(row, at);
  }
  for (const [id, row] of known) {
    if (!there.has(id)) {
      row.remove();
      known.delete(id);
    }
  }
}

/** A row whose cells are found by their labels. */
function row(labels, actions) {
  const made = element('tr');
  made.cells_ = {};
  for (const [label, className] of labels) {
    const cell = element('td', { className, data: { label } });
    made.cells_[label] = cell;
    made.append(cell);
  }
  const last = element('td', { className: 'actions' });
  for (const [text, act] of actions) {
    const button = element('button', { text });
    button.type = 'button';
    button.addEventListener('click', act);
    last.append(button);
  }
  made.cells_.actions = last;
  made.append(last);
  return made;
}

function put(cell, text) {
  const shown = text ?? '–';
  if (cell.textContent !== String(shown)) cell.textContent = shown;
}

function putPill(cell, text) {
  if (cell.textContent !== text) cell.replaceChildren(pill(text));
}

function showStreams() {
  const wanted = $('filter').value.trim().toLowerCase();
  const has = (text) => text?.toLowerCase().includes(wanted);
  const shown = [...streams.values()]
    .filter((of) => !wanted || has(of.stream_id) || has(of.model) || has(of.backend))
    .sort((one, other) => (one.stream_id < other.stream_id ? 1 : -1));
  $('none').hidden = shown.length > 0;
  $('none').textContent = streams.size ? 'None that runs has this in it.' : 'Nothing runs here now.';
  $('streams').closest('.scroll').hidden = shown.length === 0;
  table('streams', shown, (of) => of.stream_id, makeStream, fillStream);
}

function makeStream({ stream_id: id }) {
  const labels = [
    ['id', 'id'], ['model', 'long'], ['backend', 'long'], ['age', 'number'], ['events', 'number'],
    ['events a second'], ['readers', 'number'], ['journal'], ['moves', 'number'],
  ];
  const made = row(labels, [
    ['Dry run', () => dryRun(id)],
    ['Migrate', () => migrate(id)],
    ['Stop', () => stop(id)],
  ]);
  made.dataset.stream = id;
  put(made.cells_.id, id);
  const spark = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  spark.setAttribute('class', 'spark');
  spark.setAttribute('aria-hidden', 'true');
  made.rate_ = element('span', { className: 'rate' });
  made.spark_ = spark;
  made.cells_['events a second'].append(element('span', {}, made.rate_, spark));
  return made;
}

function fillStream(made, stream) {
  const cells = made.cells_;
  put(cells.model, stream.model);
  cells.model.title = stream.model ?? '';
  put(cells.backend, stream.backend);
  put(cells.age, age(stream.created_at));
  put(cells.events, stream.last_seq);
  put(made.rate_, stream.rates.length ? round(stream.rates.at(-1)) : '–');
  draw(made.spark_, stream.rates);
  put(cells.readers, stream.readers);
  putPill(cells.journal, stream.durability);
  put(cells.moves, stream.migrations);
}

function showBackends() {
  table('backends', backends, (of) => of.name, makeBackend, fillBackend);
}

function makeBackend({ name }) {
  const labels = [
    ['name', 'long'], ['state'], ['engine'], ['group'], ['generations', 'number'], ['in flight', 'number'], ['last failure'],
  ];
  const made = row(labels, [
    ['Drain', () => drain(name)],
    ['Undrain', () => undrain(name)],
  ]);
  put(made.cells_.name, name);
  return made;
}

function fillBackend(made, backend) {
  const cells = made.cells_;
  putPill(cells.state, backend.state);
  put(cells.engine, backend.engine);
  put(cells.group, backend.group);
  put(cells.generations, backend.generations);
  put(cells['in flight'], backend.in_flight);
  const failure = backend.last_failure;
  put(cells['last failure'], failure ? `${failure.class}, ${age(failure.at)} ago` : undefined);
  const [drains, undrains] = cells.actions.children;
  drains.hidden = backend.state === 'draining';
  undrains.hidden = backend.state !== 'draining';
}

function showTurn(what, data) {
  const words = {
    created: () => `${data.model ?? 'a stream'} at ${data.backend}${data.taken_over ? ', taken over from another replica' : ''}`,
    first_event: () => 'first event',
    migrated: () => `from ${data.from} to ${data.to} (${data.trigger})`,
    degraded: () => 'the journal does not take it; readers see events without ids',
    healed: () => 'the journal has all of it again',
    ended: () => data.code ?? '',
    left: () => 'another replica has it',
  };
  const time = new Date(data.time).toLocaleTimeString();
  const shown = what === 'ended' ? data.status : what.replace('_', ' ');
  $('turns').prepend(element('li', {},
    element('time', { text: time, className: 'note' }),
    pill(shown),
    element('span', { text: data.stream_id, className: 'id' }),
    element('span', { text: words[what]?.() ?? '', className: 'what' }),
  ));
  while ($('turns').childElementCount > TURNS) $('turns').lastElementChild.remove();
}

$('filter').addEventListener('input', () => later(showStreams));

// --- Acting ---------------------------------------------------------------------------------------------------------------

/** Asks whether to do it, does it, and shows what came of it. Without `yes` it is done at once: it changes nothing. */
async function act({ title, text, yes, path, show }) {
  const dialog = $('ask');
  $('ask-title').textContent = title;
  $('ask-text').textContent = text;
  $('ask-result').replaceChildren();
  const go = $('ask-yes');
  go.hidden = !yes;
  go.disabled = false;
  go.textContent = yes ?? '';
  $('ask-no').textContent = yes ? 'Cancel' : 'Close';
  const run = async () => {
    go.disabled = true;
    $('ask-result').textContent = 'asked; this may take a while';
    let shown;
    try {
      shown = show(await json('POST', path));
    } catch (error) {
      const code = error.code ? `${error.code}: ` : '';
      shown = [element('p', { text: code + error.message, className: 'fault' }), gates(error.gates)];
    }
    go.hidden = true;
    $('ask-no').textContent = 'Close';
    $('ask-result').replaceChildren(...shown.filter(Boolean));
  };
  go.onclick = run;
  dialog.showModal();
  if (!yes) await run();
}

const says = (text) => element('p', { text });

/** The verdicts, those that refuse first. */
function gates(verdicts) {
  if (!verdicts?.length) return undefined;
  const sorted = [...verdicts].sort((one, other) => one.open - other.open);
  return element('ul', {}, ...sorted.map((verdict) => element('li', {},
    element('span', { text: verdict.open ? 'open' : 'refuses', className: 'pill', data: { tone: verdict.open ? 'good' : 'bad' } }),
    element('code', { text: verdict.gate }),
    element('span', { text: verdict.message ?? '', className: 'note' }),
  )));
}

const of = (id, what) => `/admin/streams/${encodeURIComponent(id)}/${what}`;
const at = (name, what) => `/admin/backends/${encodeURIComponent(name)}/${what}`;

const stop = (id) => act({
  title: 'Stop this generation?',
  text: `${id} ends for all of its readers, and its backend is told so. It cannot be taken up again.`,
  yes: 'Stop it',
  path: of(id, 'stop'),
  show: () => [says('It has ended.')],
});

const dryRun = (id) => act({
  title: 'Would it move?',
  text: `What every gate says of ${id} now. Nothing is changed.`,
  path: `${of(id, 'migrate')}?dry_run=true`,
  show: (told) => [
    says(told.would_move ? `It would move to ${told.target}, by ${told.method}.` : 'It would stay where it is.'),
    gates(told.gates),
  ],
});

const migrate = (id) => act({
  title: 'Move this generation?',
  text: `Another backend goes on with ${id} if every gate passes; if one refuses, it stays where it is.`,
  yes: 'Move it',
  path: of(id, 'migrate'),
  show: (told) => [says(`It moved from ${told.from} to ${told.to}, by ${told.method}.`)],
});

const drain = (name) => act({
  title: `Drain ${name}?`,
  text: 'It gets nothing new, and what it runs moves to other backends where the gates allow it. What stays runs to its end.',
  yes: 'Drain it',
  path: at(name, 'drain'),
  show: (told) => [
    says(told.drained ? 'Nothing is left there.' : `${told.remaining.length} generations and ${told.other_requests} other requests are left there.`),
    says(`${told.moved} moved, ${told.left} left otherwise, ${told.ended} ended.`),
    told.warning ? element('p', { text: told.warning, className: 'fault' }) : undefined,
    ...told.remaining.map((left) => element('div', {}, element('p', {}, element('code', { text: left.stream_id }), ` ${left.reason}`), gates(left.gates) ?? '')),
  ],
});

const undrain = (name) => act({
  title: `Take the drain of ${name} back?`,
  text: 'It gets new attempts again. What has moved does not come back.',
  yes: 'Undrain it',
  path: at(name, 'undrain'),
  show: (told) => [says(`It is ${told.state}.`)],
});

begin();
look();
