// Draws the samples in the page as linked charts: the strips of each run, and all metrics of the chosen GPU. Without
// this script, the static figures remain.
(async () => {
const {axis, classes, runs, margin, finest} = JSON.parse($('#series').textContent);
const {abs, ceil, floor, max, min, round} = Math;
const clamp = (value, low, high) => min(max(value, low), high);

const NOT_RECORDED = 255;

async function inflate(id) {
  const text = $('#' + id).textContent;
  const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), letter => letter.charCodeAt());
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Times are stored as steps in a unit, seven bits per byte, lowest first.
function readTimes(bytes, {count, origin, unit}) {
  let at = 0, ticks = 0;
  return Float64Array.from({length: count}, () => {
    let size = 1, byte;
    do {
      byte = bytes[at++];
      ticks += (byte & 127) * size;
      size *= 128;
    } while (byte > 127);
    return origin + ticks * unit;
  });
}

// Each sample covers the time half-way to its neighbours, or less next to a gap. Slow intervals have their own pace.
function readCells(bytes, device) {
  const times = readTimes(bytes, device), start = times.slice(), end = times.slice();
  times.forEach((time, row) => {
    const [every, far] = device.paces.find(([, , from, to]) => from <= time && time <= to) ?? device.paces[0];
    const apart = time - times[row - 1];
    const side = apart <= far ? min(apart / 2, every * 1.25) : every / 2;
    end[row - 1] = time - apart + side;
    start[row] = time - side;
    end[row] = time + every / 2;
  });
  return {start, end};
}

// Gives each device its cells and series: a byte per sample, or the mean, minimum and maximum per bucket.
async function unpack(run) {
  const blobs = await Promise.all(run.devices.map(({blob}) => inflate(blob)));
  run.devices.forEach((device, place) => {
    let at = device.times;
    const next = () => blobs[place].subarray(at, at += device.count);
    device.cells = run.devices[device.like]?.cells ?? readCells(blobs[place], device);
    device.series = device.metrics.map(number => {
      const metric = run.metrics[number], low = next(), mean = run.bucket ? next() : low, high = run.bucket ? next() : low;
      return {number, metric, device, low, mean, high, shift: metric.averaged ? device.shift : 0};
    });
  });
}

const valueOf = ({offset, step}, code) => offset + step * code;

// The index of the first larger number in a sorted list.
function placeAfter(list, number) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > number) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Weight, sum, minimum and maximum of the codes added since the last reset; one array, as there are many pixels.
const total = new Float64Array(4);
const reset = () => total.set([0, 0, Infinity, -Infinity]);

function add(weight, code, least, most) {
  total[0] += weight;
  total[1] += weight * code;
  if (least < total[2]) total[2] = least;
  if (most > total[3]) total[3] = most;
}

// The same values for each full block of samples, with the mean as sum, so that a pixel can skip samples.
const BLOCK = 8;

function sumBlocks({device: {cells: {start, end}}, low, mean, high}) {
  const parts = [0, 1, 2, 3].map(() => new Float32Array(floor(mean.length / BLOCK)));
  for (let block = 0; block < parts[0].length; block++) {
    reset();
    for (let at = block * BLOCK; at < (block + 1) * BLOCK; at++) {
      if (mean[at] !== NOT_RECORDED) add(end[at] - start[at], mean[at], low[at], high[at]);
    }
    total[1] /= total[0] || 1;
    parts.forEach((part, place) => part[block] = total[place]);
  }
  return parts;
}

// Time-weighted mean, minimum and maximum of each pixel; NaN where nothing was recorded.
function columnsOf(series) {
  if (series.drawn?.version === version) return series.drawn;
  const {metric, shift, low, mean, high} = series, {start, end} = series.device.cells;
  const [weights, means, lows, highs] = series.blocks ??= sumBlocks(series);
  const columns = [0, 1, 2].map(() => new Float32Array(width).fill(NaN));
  let from = view[0] + shift, at = placeAfter(end, from);
  for (let x = 0; x < width; x++) {
    const to = view[0] + shift + (x + 1) * span() / width;
    reset();
    while (start[at] < to) {
      if (at % BLOCK === 0 && start[at] >= from && end[at + BLOCK - 1] <= to) {
        const block = at / BLOCK;
        add(weights[block], means[block], lows[block], highs[block]);
        at += BLOCK;
      } else {
        if (mean[at] !== NOT_RECORDED) add(min(end[at], to) - max(start[at], from), mean[at], low[at], high[at]);
        at++;
      }
    }
    // a sample that continues is in the next pixel too
    if (end[at - 1] > to) at--;
    from = to;
    if (total[0] <= 0) continue;
    [total[1] / total[0], total[2], total[3]].forEach((code, part) => columns[part][x] = valueOf(metric, code));
  }
  return series.drawn = Object.assign(columns, {version});
}

function clock(seconds, tenths) {
  const [whole, rest] = seconds.toFixed(tenths).split('.');
  const part = size => String(floor(whole / size) % 60).padStart(2, '0');
  return `${floor(whole / 3600)}:${part(60)}:${part(1)}${tenths ? '.' + rest : ''}`;
}

function sayValue({metric, device, shift, low, mean, high}, time) {
  const {start, end} = device.cells, row = placeAfter(start, time + shift) - 1;
  if (!(time + shift < end[row]) || mean[row] === NOT_RECORDED) return 'no sample';
  const text = code => valueOf(metric, code).toFixed(metric.digits);
  const range = low[row] < high[row] ? ` (${text(low[row])} to ${text(high[row])})` : '';
  return `${metric.exact ? '' : '≈ '}${text(mean[row])}${range}${metric.unit === '%' ? '' : '\u00a0'}${metric.unit}`;
}

const strips = [];
const charts = [];
const [tip, detail, pick, stops] = ['#tip', '#detail', '#gpu', '#stops'].map($);
const look = getComputedStyle(pick);
// The visible part of the axis; the strip whose metrics are shown; the shown finding, and its intervals.
let view = [0, axis], chosen, hot;
// The requested frame; charts drawn in an older version must be redrawn.
let frame = 0, version = 0;

const span = () => view[1] - view[0];

// The GPU of a run in a row, or the nearest one.
const nearest = (run, row) => run.strips[clamp(floor(row), 0, run.strips.length - 1)];

// The series of a GPU and of its host.
function seriesOf({device, run}) {
  const host = run.devices.filter(each => each.host && each.node === device.node);
  return [device, ...host].flatMap(({series}) => series).sort((a, b) => a.number - b.number);
}

// Pixels right of a chart, above a panel, in a panel's height, and between panels.
const RIGHT = 14, TITLE = 17, PANEL = 52, ROW = 76;
const TICKS = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
const NOWHERE = [0, 0, 0, 0];
// Pixels left of every chart, for names; the current chart, its pen, and the pixels between its axes.
let left, chart, pen, width;

const pixel = (time, {room}) => left + (time - view[0]) / span() * room;
// The style sheet has colours for light and for dark.
const colour = name => classes[name] ?? look.getPropertyValue('--' + name).match(/#\w+/g)[isDark ? 1 : 0];

function begin(of, height, top) {
  const {canvas, room} = of, ratio = min(devicePixelRatio, 2), least = span() / room * 84;
  const tick = TICKS.find(each => each >= least) || 86400 * ceil(least / 86400);
  [chart, pen, width] = [of, canvas.getContext('2d'), floor(room)];
  [canvas.width, canvas.height] = [(room + left + RIGHT) * ratio, height * ratio];
  canvas.style.height = height + 'px';
  pen.scale(ratio, ratio);
  pen.textBaseline = 'middle';
  for (let time = ceil(view[0] / tick) * tick; time <= view[1]; time += tick) {
    const x = pixel(time, chart);
    fill('line', [[round(x), top, 1, height - top - 17]]);
    write(clock(time, tick < 1), clamp(x, left + 20, left + width - 20), height - 8, 'soft', 'center');
  }
}

// A time interval as a rectangle with a minimum width.
function box(start, end, y, tall, least = 1) {
  if (end < view[0] || start > view[1]) return NOWHERE;
  const from = clamp(pixel(start, chart), left, left + width - least), to = min(pixel(end, chart), left + width);
  return [from, y, max(to - from, least), tall];
}

// Touching boxes form one shape, so that no seam shows between them: along their tops, and back along their bottoms.
function fill(name, boxes, alpha = 1) {
  const path = new Path2D();
  let edge, under = [];
  function close() {
    while (under.length) path.lineTo(...under.pop());
    path.closePath();
  }
  for (const [x, y, wide, tall] of boxes) {
    if (!(abs(x - edge) < .01)) {
      close();
      path.moveTo(x, y);
    } else path.lineTo(x, y);
    edge = x + wide;
    path.lineTo(edge, y);
    under.push([x, y + tall], [edge, y + tall]);
  }
  close();
  pen.globalAlpha = alpha;
  pen.fillStyle = colour(name);
  pen.fill(path);
  pen.globalAlpha = 1;
}

// Text has an outline in the page's colour, so that curves do not cross it.
function write(text, x, y, name = 'soft', align = 'left', font = '11px', most = 999) {
  pen.fillStyle = colour(name);
  pen.strokeStyle = colour('paper');
  pen.lineWidth = 3;
  pen.lineJoin = 'round';
  pen.font = `${font} ${look.fontFamily}`;
  pen.textAlign = align;
  pen.strokeText(text, x, y, most);
  pen.fillText(text, x, y, most);
}

function outline(name, thick, boxes) {
  pen.strokeStyle = colour(name);
  pen.lineWidth = thick;
  for (const each of boxes) pen.strokeRect(...each);
}

const hotBoxes = (marks, y, tall) => marks.filter(([card]) => card === hot?.card)
  .map(([, , start, end]) => box(start, end, y, tall, 3));

// The curve of a GPU, with dots where nothing was recorded; below it, the classes of its time and the findings.
function drawStrip(strip) {
  const {run: {row, top, seconds}, device, marks} = strip, tall = row * .5, thick = row * .18;
  const y = top + (strip.number + .1) * row, floorY = y + tall, track = box(0, seconds, y, tall);
  const main = device.series.find(({metric}) => metric.strip), means = main ? columnsOf(main)[0] : [];
  const bars = [], dots = [];
  function addDots(x) {
    for (let at = x % 6; at < tall; at += 6) dots.push([x, y + at, 1, 1.5]);
  }
  for (let at = 0; at < width; at++) {
    const high = clamp(means[at] / 100, 0, 1) * tall, x = round(left) + at;
    if (high >= 0) bars.push([x, floorY - high, 1, high]);
    else if (x >= track[0] && x < track[0] + track[2]) addDots(x);
  }
  for (const [start, end] of strip.gaps) {
    const [from, , wide] = box(start, end);
    for (let x = 0; x < wide; x++) addDots(round(from) + x);
  }
  const [ink, weight] = strip === chosen ? ['link', 600] : ['ink', 400];
  write(device.name, 0, y + tall / 2, ink, 'left', `${weight} ${min(12, row * .85)}px`, left - 6);
  fill('track', [track]);
  fill('busy', bars);
  for (const [name, tops] of strip.band) {
    const size = seconds / tops.length, base = floorY + 1 + thick;
    fill(name, tops.map((top, at) => box(at * size, (at + 1) * size, base - thick * top / 100, thick * top / 100, .5)));
  }
  fill('soft', dots);
  for (const name of ['soft', 'note', 'mark']) {
    const found = marks.filter(([, level]) => level === name);
    fill(name, found.map(([, , start, end, whole]) =>
      box(start, end, floorY + thick + 2 + whole * row / 9, whole ? 1 : row * .12, 2)));
  }
  outline('mark', 2, hotBoxes(marks, y - 1, tall + thick + row * .15 + 3));
}

function drawStrips(of) {
  const {row, top, strips, events} = of.run, bottom = top + row * strips.length;
  begin(of, bottom + 22, top);
  strips.forEach(drawStrip);
  for (const [name, time] of events) {
    const [x, , seen] = box(time, time, 0, 3);
    if (!seen) continue;
    for (let y = top - 4; y < bottom; y += 5) fill('event', [[x, y, 1, 3]]);
    write(name, x, top - 12, 'event', 'center');
  }
}

// One metric of the chosen GPU: its mean as a line, its range as a pale band, all GPUs in grey, and its limits.
function drawPanel(series, position) {
  const {run: {strips}, marks, limits} = chosen, {label, low, high} = series.metric, isHost = series.device.host;
  const y = position * ROW + TITLE, [mean, least, most] = columnsOf(series), at = [...mean.keys()];
  const up = value => y + PANEL * (1 - (value - low) / (high - low));
  const bar = (from, to, x) => from <= to ? [left + x, up(to), 1, max(up(from) - up(to), 1)] : NOWHERE;
  write(label, left, y - 8, 'ink', 'left', '600 11px');
  [high, low].forEach((end, row) => write(end, left - 6, y + 6 + row * (PANEL - 11), 'soft', 'right'));
  outline('line', 1, [[left + .5, y + .5, width - 1, PANEL - 1]]);
  fill('mark', hotBoxes(marks, y, PANEL), .12);
  const held = limits.filter(([number]) => !isHost && number === series.number);
  fill('bad', held.map(([, limit]) => [left, round(up(limit)), width, 1]));
  if (strips[1] && !isHost) {
    const peers = strips.flatMap(({device}) => device.series.filter(({metric}) => metric === series.metric))
      .map(each => columnsOf(each)[0]);
    fill('soft', at.map(x => {
      reset();
      for (const peer of peers) add(0, 0, peer[x], peer[x]);
      return bar(total[2], total[3], x);
    }), .22);
  }
  fill('busy', at.map(x => bar(least[x], most[x], x)), .22);
  outline('busy', 1.4, []);
  pen.beginPath();
  mean.forEach((value, x) => {
    // moveTo and lineTo ignore NaN
    if (isNaN(mean[x - 1])) pen.moveTo(left + x, up(value));
    pen.lineTo(left + x + 1, up(value));
  });
  pen.stroke();
  for (const [, limit, text] of held) {
    write(text, left + width - 4, up(limit) + (up(limit) < y + 14 ? 8 : -7), 'bad', 'right');
  }
  outline('mark', 2, hotBoxes(marks, y, PANEL));
}

function drawDetail(of) {
  const list = seriesOf(chosen);
  begin(of, list.length * ROW + 20, TITLE);
  list.forEach(drawPanel);
}

// Draws the visible charts, and the others once they become visible.
function paint() {
  frame = 0;
  left = min(margin, charts[0].canvas.clientWidth / 4);
  for (const of of charts) of.room = of.canvas.clientWidth - left - RIGHT;
  const due = charts.filter(({canvas, room, drawn}) => {
    const {top, bottom} = canvas.getBoundingClientRect();
    return room > 0 && (!drawn || drawn < version && bottom > 0 && top < innerHeight);
  });
  for (const of of due) {
    of.drawn = version;
    (of.run ? drawStrips : drawDetail)(of);
  }
}

const paintSoon = () => frame ||= requestAnimationFrame(paint);

function redraw() {
  version++;
  paintSoon();
}

function zoom(start, end) {
  const size = clamp(end - start, finest, axis), from = clamp(start, 0, axis - size);
  view = [from, from + size];
  $('#shown').textContent = `${clock(view[0])} to ${clock(view[1])}`;
  stops.hidden = !hot;
  point();
  redraw();
}

function scale(by, about = (view[0] + view[1]) / 2) {
  zoom(...view.map(edge => about + (edge - about) * by));
}

function showAll() {
  hot = null;
  zoom(0, axis);
}

function choose(strip) {
  chosen = strip;
  pick.selectedIndex = strips.indexOf(strip);
  const slot = $('#slot' + strip.run.place);
  if (!slot.contains(detail)) slot.append(detail);
  redraw();
}

// The intervals that a card marks, joined if several GPUs share them: [start, end, whole, strip].
function showCard(card) {
  const list = [];
  const marks = strips.flatMap(strip => strip.marks.filter(([id]) => id === card).map(([, , ...mark]) => [...mark, strip]));
  for (const mark of marks.sort((a, b) => a[0] - b[0])) {
    const last = list.at(-1);
    if (!last || mark[0] > (last[0] + last[1]) / 2) list.push(mark);
  }
  if (!list.length) return;
  const sizes = list.map(([start, end]) => end - start);
  hot = {card, list, at: sizes.indexOf(max(...sizes))};
  showStretch(0);
}

function showStretch(by) {
  const {card, list} = hot, at = (hot.at + by + list.length) % list.length, [start, end, whole, strip] = list[at];
  const room = max((end - start) * 1.5, 15 * strip.device.interval);
  hot.at = at;
  stops.firstChild.textContent = `${card}: ${at + 1} of ${list.length}`;
  choose(strip);
  zoom(...whole ? [0, axis] : [start - room, end + room]);
  const {canvas, run} = charts.find(({run}) => run === strip.run);
  unfold(canvas);
  redraw();
  paint();
  canvas.focus({preventScroll: true});
  scrollBy(0, canvas.getBoundingClientRect().top + strip.number * run.row - innerHeight / 3);
}

const showLinked = () => showCard(location.hash.match(/(?:show=|mark-)(F\d+)/)?.[1]);

// Marks a time in every chart and shows a GPU's values beside a point; without a GPU, it shows nothing.
function point(time, strip, x, y) {
  tip.hidden = !strip;
  for (const of of charts) {
    of.line.hidden = !strip;
    of.line.style.left = pixel(time, of) + 'px';
  }
  if (!strip) return;
  const cards = new Set(strip.marks.filter(([, , start, end]) => start <= time && time <= end).map(([card]) => card));
  tip.textContent = [
    `${runs[1] ? strip.run.label + ', ' : ''}${strip.device.name} at ${clock(time, span() < 60)}`,
    ...seriesOf(strip).map(series => `${series.metric.title}: ${sayValue(series, time)}`),
    ...cards.size ? [`Findings: ${[...cards].join(', ')}`] : [],
  ].join('\n');
  tip.style.left = clamp(x + 14, 4, innerWidth - tip.offsetWidth - 4) + 'px';
  tip.style.top = clamp(y + 14, 4, innerHeight - tip.offsetHeight - 4) + 'px';
}

// Handles pointer, wheel and keys on a chart.
function wire(of) {
  const {canvas, area, run} = of;
  let pressed = null, at = null;
  const timeOf = ({offsetX}) => clamp(view[0] + (offsetX - left) / of.room * span(), ...view);
  const stripOf = ({offsetY}) => run ? nearest(run, (offsetY - run.top) / run.row) : chosen;
  const stretch = event => [at, timeOf(event)].sort((a, b) => a - b);
  const isDrag = ({clientX}) => pressed && abs(clientX - pressed.clientX) > 4;
  const pan = way => zoom(...view.map(edge => edge + way * span() / 8));
  const step = by => choose(nearest(chosen.run, chosen.number + by));
  function walk(way) {
    const {x, y} = canvas.getBoundingClientRect();
    at = clamp((at ?? view[0] + span() / 2) + way * max(span() / 500, chosen.device.interval), ...view);
    point(at, chosen, x + pixel(at, of), y);
  }
  const keys = {
    ArrowLeft: isShift => (isShift ? walk : pan)(-1),
    ArrowRight: isShift => (isShift ? walk : pan)(1),
    ArrowUp: () => step(-1),
    ArrowDown: () => step(1),
    '+': () => scale(.5),
    '=': () => scale(.5),
    '-': () => scale(2),
    Escape: showAll,
  };
  Object.assign(canvas, {
    onpointerdown(event) {
      pressed = event.button ? null : event;
      at = timeOf(event);
      canvas.setPointerCapture(event.pointerId);
    },
    onpointermove(event) {
      point(timeOf(event), stripOf(event), event.clientX, event.clientY);
      area.hidden = !isDrag(event);
      const [from, to] = stretch(event).map(each => pixel(each, of));
      [area.style.left, area.style.width] = [from + 'px', to - from + 'px'];
    },
    onpointerup(event) {
      if (isDrag(event)) zoom(...stretch(event));
      else if (pressed) choose(stripOf(event));
      pressed = null;
      area.hidden = true;
    },
    onpointercancel: () => pressed = null,
    onpointerleave: () => point(),
    onblur: () => point(),
    ondblclick: showAll,
    onwheel(event) {
      if (!event.ctrlKey) return;
      event.preventDefault();
      scale(event.deltaY > 0 ? 1.25 : .8, timeOf(event));
    },
    onkeydown(event) {
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key](event.shiftKey);
    },
  });
}

for (const run of runs) {
  await unpack(run);
  run.strips.forEach((strip, number) => {
    strips.push(Object.assign(strip, {run, number, device: run.devices[strip.device]}));
  });
}
for (const run of [...runs, null]) {
  const place = $(`#chart${run?.place ?? 's'}`), [canvas, line, area] = place.children;
  charts.push({canvas, line, area, run});
  place.hidden = false;
  if (run) $('#run' + run.place).hidden = true;
}
for (const node of all('.live')) node.hidden = false;
charts.forEach(wire);
for (const button of all('[data-by]')) button.onclick = () => +button.dataset.by ? scale(+button.dataset.by) : showAll();
for (const button of all('#stops button')) button.onclick = () => showStretch(+button.value);
for (const link of all('a[href*="-mark-"]')) {
  const [, id] = link.hash.match(/mark-(F\d+)/);
  link.href = '#show=' + id;
  link.onclick = () => showCard(id);
}
pick.onchange = () => choose(strips[pick.selectedIndex]);
onresize = () => {
  for (const of of charts) of.drawn = 0;
  redraw();
};
onscroll = paintSoon;
onhashchange = showLinked;
document.addEventListener('toggle', redraw, true);
choose(strips[pick.selectedIndex]);
showAll();
showLinked();
})();
