// Draws the samples inside the page as linked charts. Without this script the static figures stay.
(async () => {
const NONE = 255, BLOCK = 8, RIGHT = 14, TITLE = 17, TALL = 52, ROW = 76, NOWHERE = [0, 0, 0, 0],
 STEPS = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200],
 {abs, ceil, floor, max, min, round} = Math, clamp = (value, low, high) => min(max(value, low), high);
if (!window.DecompressionStream) return;
const {axis, classes, runs, margin, finest} = JSON.parse($('#series').textContent), strips = [], charts = [],
 tip = $('#tip'), detail = $('#detail'), pick = $('#gpu'), stops = $('#stops'), look = getComputedStyle(pick);
let view = [0, axis], chosen, hot, left, frame = 0, version = 0;

async function inflate(id) {
 const text = $('#' + id).textContent,
  bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), l => l.charCodeAt()),
  stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
 return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Each sample stands for the time half-way to its neighbours, less beside a gap. A slow stretch has its own pace.
function cells(bytes, {count, origin, unit, paces}) {
 const times = new Float64Array(count), start = times.slice(), end = times.slice();
 for (let row = 0, at = 0, ticks = 0; row < count;) {
  let size = 1, byte;
  do ticks += ((byte = bytes[at++]) & 127) * size, size *= 128;
  while (byte > 127);
  times[row++] = origin + ticks * unit;
 }
 times.forEach((time, row) => {
  const before = times[row - 1], [every, far] = paces.find(([, , from, to]) => from <= time && time <= to) ?? paces[0],
   side = time - before <= far ? min((time - before) / 2, every * 1.25) : every / 2;
  end[row - 1] = before + side;
  start[row] = time - side;
  end[row] = time + every / 2;
 });
 return {start, end};
}

async function unpack(run) {
 const blobs = await Promise.all(run.devices.map(({blob}) => inflate(blob)));
 run.devices.forEach((device, place) => {
  const bytes = blobs[place];
  let at = device.times;
  const part = () => bytes.subarray(at, at += device.count);
  device.cells = run.devices[device.like]?.cells ?? cells(bytes, device);
  device.series = device.metrics.map(number => {
   const metric = run.metrics[number], low = part(), [mean, high] = run.bucket ? [part(), part()] : [low, low];
   return {number, metric, device, low, mean, high, shift: metric.averaged ? device.shift : 0};
  });
 });
 run.strips.forEach((strip, number) => strips.push(Object.assign(strip, {run, number, of: run.devices[strip.device]})));
}

function after(list, time) {
 let low = 0, high = list.length;
 while (low < high) {
  const middle = (low + high) >> 1;
  list[middle] > time ? high = middle : low = middle + 1;
 }
 return low;
}

const value = ({offset, step}, code) => offset + step * code, span = () => view[1] - view[0];

// Weight, sum, smallest and largest code of what was added since the last reset.
const total = new Float64Array(4), reset = () => total.set([0, 0, Infinity, -Infinity]);

function add(weight, code, least, most) {
 total[0] += weight;
 total[1] += weight * code;
 if (least < total[2]) total[2] = least;
 if (most > total[3]) total[3] = most;
}

// The same of each full block of samples, the sum as a mean, so that a pixel need not look at each of them.
function blocks({device, low, mean, high}) {
 const {start, end} = device.cells, parts = [0, 1, 2, 3].map(() => new Float32Array(mean.length / BLOCK | 0));
 for (let at = 0; at < parts[0].length * BLOCK;) {
  reset();
  do if (mean[at] !== NONE) add(end[at] - start[at], mean[at], low[at], high[at]);
  while (++at % BLOCK);
  total[1] /= total[0] || 1;
  parts.forEach((part, place) => part[at / BLOCK - 1] = total[place]);
 }
 return parts;
}

// Time-weighted mean, smallest and largest value of each pixel; NaN where nothing was recorded.
function columns(series) {
 const {metric, device, shift, low, mean, high, drawn} = series, {start, end} = device.cells;
 if (drawn?.version === version) return drawn;
 const [weights, means, lows, highs] = series.blocks ??= blocks(series), out = [0, 1, 2].map(() => new Float32Array(width).fill(NaN));
 series.drawn = out;
 out.version = version;
 let begin = view[0] + shift, at = after(end, begin);
 for (let x = 0; x < width; x++) {
  const stop = view[0] + shift + (x + 1) * span() / width;
  reset();
  while (start[at] < stop) {
   if (at % BLOCK === 0 && start[at] >= begin && end[at + BLOCK - 1] <= stop) {
    const block = at / BLOCK;
    add(weights[block], means[block], lows[block], highs[block]);
    at += BLOCK;
   } else {
    if (mean[at] !== NONE) add(min(end[at], stop) - max(start[at], begin), mean[at], low[at], high[at]);
    at++;
   }
  }
  if (end[at - 1] > stop) at--;
  begin = stop;
  if (total[0] > 0) [total[1] / total[0], total[2], total[3]].forEach((code, part) => out[part][x] = value(metric, code));
 }
 return out;
}

function said({metric, device, shift, low, mean, high}, time) {
 const {start, end} = device.cells, row = after(start, time += shift) - 1;
 if (!(time < end[row]) || mean[row] === NONE) return 'no sample';
 const text = code => value(metric, code).toFixed(metric.digits);
 const range = low[row] < high[row] ? ` (${text(low[row])} to ${text(high[row])})` : '';
 return `${metric.exact ? '' : '≈ '}${text(mean[row])}${range}${metric.unit === '%' ? '' : '\u00a0'}${metric.unit}`;
}

function clock(seconds, tenths) {
 const [whole, rest] = seconds.toFixed(tenths).split('.'), part = size => String(floor(whole / size) % 60).padStart(2, '0');
 return `${floor(whole / 3600)}:${part(60)}:${part(1)}${tenths ? '.' + rest : ''}`;
}

const pixel = (time, {room}) => left + (time - view[0]) / span() * room,
 colour = name => classes[name] ?? look.getPropertyValue('--' + name);

// The GPU of a run in a row, or nearest to it.
const nearest = ({strips}, row) => strips[clamp(row | 0, 0, strips.length - 1)];

// What the functions of drawing work on: the pen of a chart, and the pixels between its axes.
let pen, chart, width;

function begin(of, height, top) {
 const {canvas, room} = of, ratio = min(devicePixelRatio, 2), least = span() / room * 84;
 const step = STEPS.find(each => each >= least) || 86400 * ceil(least / 86400);
 [chart, pen, width] = [of, canvas.getContext('2d'), room | 0];
 [canvas.width, canvas.height] = [(room + left + RIGHT) * ratio, height * ratio];
 canvas.style.height = height + 'px';
 pen.scale(ratio, ratio);
 pen.textBaseline = 'middle';
 for (let time = ceil(view[0] / step) * step; time <= view[1]; time += step) {
  const x = pixel(time, chart);
  fill('line', [[round(x), top, 1, height - top - 17]]);
  write(clock(time, step < 1), clamp(x, left + 20, left + width - 20), height - 8, 'soft', 'center');
 }
}

function box(start, end, y, tall, least = 1) {
 const from = clamp(pixel(start, chart), left, left + width - least), to = min(pixel(end, chart), left + width);
 return end < view[0] || start > view[1] ? NOWHERE : [from, y, max(to - from, least), tall];
}

function fill(name, boxes, alpha = 1) {
 const path = new Path2D();
 let edge, under = [];
 const close = () => {
  while (under.length) path.lineTo(...under.pop());
  path.closePath();
 };
 for (const [x, y, wide, tall] of boxes) {
  if (x !== edge) close(), path.moveTo(x, y);
  else path.lineTo(x, y);
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

function write(text, x, y, name = 'soft', align = 'left', font = '11px', most = 999) {
 pen.fillStyle = colour(name);
 pen.font = `${font} ${look.fontFamily}`;
 pen.textAlign = align;
 pen.fillText(text, x, y, most);
}

function stroke(name, thick, boxes) {
 pen.strokeStyle = colour(name);
 pen.lineWidth = thick;
 for (const each of boxes) pen.strokeRect(...each);
}

const outlined = (marks, y, tall) => marks.filter(([card]) => card === hot?.card).map(([, , start, end]) => box(start, end, y, tall, 3));

function drawStrips(of) {
 const {run} = of, {row, top} = run, bottom = top + row * run.strips.length, tall = row * .5, thick = row * .18;
 begin(of, bottom + 22, top);
 for (const strip of run.strips) {
  const y = top + (strip.number + .1) * row, floor = y + tall, track = box(0, run.seconds, y, tall);
  const series = strip.of.series.find(({metric}) => metric.strip), means = series ? columns(series)[0] : [], bars = [], dots = [], bands = {};
  const own = strip === chosen, hole = x => {
   for (let at = x % 6; at < tall; at += 6) dots.push([x, y + at, 1, 1.5]);
  };
  write(strip.of.name, 0, y + tall / 2, own ? 'link' : 'ink', 'left', `${own ? 600 : 400} ${min(12, row * .85)}px`, left - 6);
  for (let at = 0; at < width; at++) {
   const high = clamp(means[at] / 100, 0, 1) * tall, x = round(left) + at;
   if (high >= 0) bars.push([x, floor - high, 1, high]);
   else if (x >= track[0] && x < track[0] + track[2]) hole(x);
  }
  for (const [start, end] of strip.gaps) {
   const [from, , wide] = box(start, end);
   for (let x = 0; x < wide; x++) hole(round(from) + x);
  }
  strip.band.forEach(([name, end], at) => {
   (bands[name] ??= []).push(box(strip.band[at - 1]?.[1] ?? 0, end, floor + 1, thick, .5));
  });
  fill('track', [track]);
  fill('busy', bars);
  for (const name in bands) fill(name, bands[name]);
  fill('soft', dots);
  for (const name of ['soft', 'note', 'mark']) {
   const marks = strip.marks.filter(([, level]) => level === name);
   fill(name, marks.map(([, , start, end, whole]) => box(start, end, floor + thick + 2 + whole * row / 9, whole ? 1 : row * .12, 2)));
  }
  stroke('mark', 2, outlined(strip.marks, y - 1, tall + thick + row * .15 + 3));
 }
 for (const [name, time] of run.events) {
  const [x, , seen] = box(time, time, 0, 3);
  if (!seen) continue;
  for (let y = top - 4; y < bottom; y += 5) fill('event', [[x, y, 1, 3]]);
  write(name, x, top - 12, 'event', 'center');
 }
}

// The series of a GPU and of the host it sits in.
function seriesOf({of, run}) {
 const host = run.devices.filter(each => each.host && each.node === of.node);
 return [of, ...host].flatMap(({series}) => series).sort((a, b) => a.number - b.number);
}

function drawDetail(of) {
 const {run: {strips}, marks} = chosen, list = seriesOf(chosen);
 begin(of, list.length * ROW + 20, TITLE);
 list.forEach((series, position) => {
  const {label, low, high} = series.metric, y = position * ROW + TITLE, [mean, least, most] = columns(series), at = [...mean.keys()],
   up = value => y + TALL * (1 - (value - low) / (high - low)),
   bar = (from, to, x) => from <= to ? [left + x, up(to), 1, max(up(from) - up(to), 1)] : NOWHERE;
  write(label, left, y - 8, 'ink', 'left', '600 11px');
  [high, low].forEach((end, row) => write(end, left - 6, y + 6 + row * (TALL - 11), 'soft', 'right'));
  stroke('line', 1, [[left + .5, y + .5, width - 1, TALL - 1]]);
  fill('mark', outlined(marks, y, TALL), .12);
  if (strips[1] && !series.device.host) {
   const peers = strips.flatMap(strip => strip.of.series.filter(({metric}) => metric === series.metric)).map(each => columns(each)[0]);
   fill('soft', at.map(x => {
    reset();
    for (const peer of peers) add(0, 0, peer[x], peer[x]);
    return bar(total[2], total[3], x);
   }), .22);
  }
  fill('busy', at.map(x => bar(least[x], most[x], x)), .22);
  stroke('busy', 1.4, []);
  pen.beginPath();
  mean.forEach((value, x) => {
   // no number moves or draws nothing
   if (isNaN(mean[x - 1])) pen.moveTo(left + x, up(value));
   pen.lineTo(left + x + 1, up(value));
  });
  pen.stroke();
  for (const [number, limit, text] of series.device.host ? [] : chosen.limits) {
   if (number !== series.number) continue;
   fill('bad', [[left, round(up(limit)), width, 1]]);
   write(text, left + width - 4, up(limit) + (up(limit) < y + 14 ? 8 : -7), 'bad', 'right');
  }
  stroke('mark', 2, outlined(marks, y, TALL));
 });
}

// Draws the charts in sight, the others when they come there.
function paint() {
 frame = 0;
 left = min(margin, charts[0].canvas.clientWidth / 4);
 const due = charts.filter(chart => {
  const {top, bottom} = chart.canvas.getBoundingClientRect();
  chart.room = chart.canvas.clientWidth - left - RIGHT;
  return chart.room > 0 && (!chart.drawn || chart.drawn < version && bottom > 0 && top < innerHeight);
 });
 for (const chart of due) {
  chart.drawn = version;
  (chart.run ? drawStrips : drawDetail)(chart);
 }
}

const soon = () => frame ||= requestAnimationFrame(paint), redraw = () => void (version++, soon());

function zoom(start, end) {
 const size = clamp(end - start, finest, axis), from = clamp(start, 0, axis - size);
 view = [from, from + size];
 $('#shown').textContent = `${clock(view[0])} to ${clock(view[1])}`;
 stops.hidden = !hot;
 cross();
 redraw();
}

function scale(by, about = (view[0] + view[1]) / 2) {
 if (!by) hot = null;
 zoom(...by ? view.map(edge => about + (edge - about) * by) : [0, axis]);
}

function choose(strip) {
 chosen = strip;
 pick.selectedIndex = strips.indexOf(strip);
 const slot = $('#slot' + strip.run.place);
 slot.contains(detail) || slot.append(detail);
 redraw();
}

// The stretches that a card marks, those of several GPUs at the same time as one: [start, end, whole, strip].
function show(card) {
 const list = [], marks = strips.flatMap(strip => strip.marks.flatMap(([id, , ...mark]) => id === card ? [[...mark, strip]] : []));
 for (const mark of marks.sort((a, b) => a[0] - b[0])) {
  const last = list.at(-1);
  if (!last || mark[0] > (last[0] + last[1]) / 2) list.push(mark);
 }
 if (!list.length) return;
 const sizes = list.map(([start, end]) => end - start);
 hot = {card, list, at: sizes.indexOf(max(...sizes))};
 step(0);
}

function step(by) {
 const {list, card} = hot, at = hot.at = (hot.at + by + list.length) % list.length, [start, end, whole, strip] = list[at],
  room = max((end - start) * 1.5, 15 * strip.of.interval);
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

const follow = () => show(location.hash.match(/(?:show=|mark-)(F\d+)/)?.[1]);

function cross(time, strip, x, y) {
 tip.hidden = !strip;
 for (const of of charts) {
  of.line.hidden = tip.hidden;
  of.line.style.left = pixel(time, of) + 'px';
 }
 if (tip.hidden) return;
 const cards = new Set(strip.marks.filter(mark => mark[2] <= time && time <= mark[3]).map(mark => mark[0]));
 const lines = [
  `${runs[1] ? strip.run.label + ', ' : ''}${strip.of.name} at ${clock(time, span() < 60)}`,
  ...seriesOf(strip).map(series => `${series.metric.title}: ${said(series, time)}`),
 ];
 if (cards.size) lines.push(`Findings: ${[...cards].join(', ')}`);
 tip.textContent = lines.join('\n');
 tip.style.left = clamp(x + 14, 4, innerWidth - tip.offsetWidth - 4) + 'px';
 tip.style.top = clamp(y + 14, 4, innerHeight - tip.offsetHeight - 4) + 'px';
}

function wire(of) {
 const {canvas, area, run} = of;
 let drag = null, at = null;
 const time = ({offsetX}) => clamp(view[0] + (offsetX - left) / of.room * span(), ...view),
  under = ({offsetY}) => run ? nearest(run, (offsetY - run.top) / run.row) : chosen,
  stretch = event => [at, time(event)].sort((a, b) => a - b),
  moved = ({clientX}) => drag && abs(clientX - drag.clientX) > 4,
  next = by => choose(nearest(chosen.run, chosen.number + by)),
  pan = way => zoom(...view.map(edge => edge + way * span() / 8)),
  walk = way => {
   const {x, y} = canvas.getBoundingClientRect();
   at = clamp((at ?? view[0] + span() / 2) + way * max(span() / 500, chosen.of.interval), ...view);
   cross(at, chosen, x + pixel(at, of), y);
  };
 Object.assign(canvas, {
  onpointerdown(event) {
   drag = !event.button && event;
   at = time(event);
   canvas.setPointerCapture(event.pointerId);
  },
  onpointermove(event) {
   cross(time(event), under(event), event.clientX, event.clientY);
   area.hidden = !moved(event);
   const [from, to] = stretch(event).map(each => pixel(each, of));
   [area.style.left, area.style.width] = [from + 'px', to - from + 'px'];
  },
  onpointerup(event) {
   if (moved(event)) zoom(...stretch(event));
   else if (drag) choose(under(event));
   drag = null;
   area.hidden = true;
  },
  onpointercancel: () => drag = null,
  onpointerleave: () => cross(),
  onblur: () => cross(),
  ondblclick: () => scale(0),
  onwheel(event) {
   if (!event.ctrlKey) return;
   event.preventDefault();
   scale(event.deltaY > 0 ? 1.25 : .8, time(event));
  },
  onkeydown(event) {
   const move = event.shiftKey ? walk : pan, [act, by] = {
    ArrowLeft: [move, -1], ArrowRight: [move, 1], ArrowUp: [next, -1], ArrowDown: [next, 1],
    '+': [scale, .5], '=': [scale, .5], '-': [scale, 2], Escape: [scale, 0],
   }[event.key] || [];
   if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
   event.preventDefault();
   act(by);
  },
 });
}

for (const run of runs) await unpack(run);
for (const run of [...runs, null]) {
 const box = $(`#chart${run?.place ?? 's'}`), [canvas, line, area] = box.children;
 charts.push({canvas, line, area, run});
 box.hidden = false;
 if (run) $('#run' + run.place).hidden = true;
}
for (const node of all('.live')) node.hidden = false;
charts.forEach(wire);
for (const node of all('.tools button')) node.onclick = () => node.dataset.by ? scale(+node.dataset.by) : step(+node.value);
for (const link of all('.card a[href*="-mark-"]')) {
 const {id} = link.closest('.card');
 link.href = '#show=' + id;
 link.onclick = () => void show(id);
}
pick.onchange = () => choose(strips[pick.selectedIndex]);
onresize = () => {
 for (const chart of charts) chart.drawn = 0;
 redraw();
};
onscroll = soon;
onhashchange = follow;
document.addEventListener('toggle', redraw, true);
choose(strips[pick.selectedIndex]);
scale(0);
follow();
})();
