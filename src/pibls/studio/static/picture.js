// A solution as a map, a curve or a surface; the values come as numbers and are coloured here.
{
const STOPS = {
  viridis: ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
  magma: ["000004", "180f3d", "440f76", "721f81", "9e2f7f", "cd4071", "f1605d", "fd9668", "feca8d", "fcfdbf"],
  signed: ["2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b"],
};
const OUTSIDE = 65535;

const tables = {};
const colours = (name) => {
  if (tables[name]) return tables[name];
  const stops = STOPS[name].map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  const table = new Uint8Array(256 * 3);
  for (let k = 0; k < 256; k++) {
    const at = (k / 255) * (stops.length - 1);
    const i = Math.min(Math.floor(at), stops.length - 2);
    for (let c = 0; c < 3; c++) table[3 * k + c] = stops[i][c] + (at - i) * (stops[i + 1][c] - stops[i][c]);
  }
  return (tables[name] = table);
};
const decoded = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Uint16Array(bytes.buffer);
};
const number = (value) => (value === 0 ? "0" : Math.abs(value) >= 1e4 || Math.abs(value) < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(3)));
const ticks = (low, high, most = 5) => {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) found.push(+v.toPrecision(12));
  return found;
};

class Picture extends HTMLElement {
  #data = null;
  #frames = [];
  #frame = 0;
  #playing = 0;
  #turn = { about: -0.6, above: 0.6 };
  #drag = null;
  #view = null;

  connectedCallback() {
    if (this.canvas) return;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    this.bar = document.createElement("div");
    this.bar.className = "film";
    this.bar.hidden = true;
    this.bar.innerHTML = '<button type="button" aria-label="Play the film">▶</button><input type="range" min="0" value="0" aria-label="Frame"><output></output>';
    this.hint = document.createElement("div");
    this.hint.className = "hint";
    this.hint.setAttribute("aria-live", "off");
    this.append(this.canvas, this.hint, this.bar);
    this.bar.querySelector("input").addEventListener("input", (event) => this.#show(+event.target.value));
    this.bar.querySelector("button").addEventListener("click", () => this.#play());
    new ResizeObserver(() => this.#draw()).observe(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    new MutationObserver(() => this.#draw()).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.canvas.addEventListener("pointerdown", (event) => this.#down(event));
    this.canvas.addEventListener("pointermove", (event) => this.#moved(event));
    this.canvas.addEventListener("pointerup", (event) => this.#up(event));
    this.canvas.addEventListener("pointerleave", () => (this.hint.textContent = ""));
    this.canvas.classList.toggle("cutting", Boolean(this.cuts));
    this.#apply();
  }

  set data(value) {
    this.#data = value;
    this.#apply();
  }

  #apply() {
    const value = this.#data;
    if (!this.canvas) return;
    if (!value) {
      if (this.#playing) this.#play();
      this.#frame = 0;
      this.bar.hidden = true;
      return this.#draw();
    }
    this.#frames = value.codes ? value.codes.map(decoded) : [];
    const count = value.frames.length;
    this.bar.hidden = count < 2;
    this.bar.querySelector("input").max = count - 1;
    this.#show(Math.min(this.#frame, count - 1));
  }

  get data() {
    return this.#data;
  }

  set surface(value) {
    this.surfaced = Boolean(value);
    this.#draw();
  }

  get surface() {
    return this.surfaced;
  }

  set cutting(value) {
    this.cuts = Boolean(value);
    this.canvas?.classList.toggle("cutting", this.cuts);
  }

  get cutting() {
    return this.cuts;
  }

  set marks(value) {
    this.marked = value;
    this.#draw();
  }

  get marks() {
    return this.marked;
  }

  #show(frame) {
    this.#frame = Math.max(0, frame);
    this.bar.querySelector("input").value = this.#frame;
    this.bar.querySelector("output").textContent = this.#data.frames[this.#frame];
    this.#draw();
    this.dispatchEvent(new CustomEvent("frame", { detail: { frame: this.#frame } }));
  }

  #play() {
    const button = this.bar.querySelector("button");
    if (this.#playing) {
      clearInterval(this.#playing);
      this.#playing = 0;
      button.textContent = "▶";
      return;
    }
    button.textContent = "❚❚";
    this.#playing = setInterval(() => this.isConnected ? this.#show((this.#frame + 1) % this.#data.frames.length) : clearInterval(this.#playing), 120);
  }

  get #ink() {
    const style = getComputedStyle(this);
    return { ink: style.getPropertyValue("--ink").trim() || "#222", soft: style.getPropertyValue("--soft").trim() || "#888", accent: style.getPropertyValue("--accent").trim() || "#2563eb", line: style.getPropertyValue("--line").trim() || "#ddd" };
  }

  #draw() {
    const [width, height] = [this.clientWidth, this.clientHeight - (this.bar?.hidden === false ? 40 : 0)];
    if (!this.canvas || width < 20 || height < 20) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = `${height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    if (!this.#data) return;
    this.canvas.setAttribute("aria-label", `${this.#data.title}, from ${number(this.#data.low)} to ${number(this.#data.high)}`);
    if (this.#data.kind === "curve") this.#drawCurve(pen, width, height);
    else if (this.surfaced) this.#drawSurface(pen, width, height);
    else this.#drawMap(pen, width, height);
    this.drawn = performance.now();
  }

  #table() {
    return colours(this.#data.log ? "magma" : this.#data.signed ? "signed" : "viridis");
  }

  #index(code) {
    const { low, high, signed } = this.#data;
    let share = code / (OUTSIDE - 1);
    if (signed) {
      const largest = Math.max(-low, high);
      share = (low + share * (high - low) + largest) / (2 * largest);
    }
    return Math.max(0, Math.min(255, Math.round(share * 255)));
  }

  #value(code) {
    const { low, high, log } = this.#data;
    const share = code / (OUTSIDE - 1);
    return log ? 10 ** (Math.log10(low) + share * (Math.log10(high) - Math.log10(low))) : low + share * (high - low);
  }

  #drawMap(pen, width, height) {
    const { limits, n, in_space: space, names } = this.#data;
    const [[left, right], [low, high]] = limits;
    const room = { left: 52, right: 92, top: 28, bottom: 40 };
    let [w, h] = [width - room.left - room.right, height - room.top - room.bottom];
    const aspect = (right - left) / (high - low);
    if (space) [w, h] = w / h > aspect ? [h * aspect, h] : [w, w / aspect];
    const [x0, y0] = [room.left + (width - room.left - room.right - w) / 2, room.top + (height - room.top - room.bottom - h) / 2];
    this.#view = { x0, y0, w, h };
    const place = ([x, y]) => [x0 + ((x - left) / (right - left)) * w, y0 + h - ((y - low) / (high - low)) * h];
    const trace = (points, close) => {
      points.forEach((p, i) => pen[i ? "lineTo" : "moveTo"](...place(p)));
      if (close) pen.closePath();
    };
    pen.save();
    pen.beginPath();
    const { outline } = this.#data;
    const moves = this.#data.moves?.[this.#frame];
    if (outline.length) outline.forEach((curve) => trace(curve, true));
    else pen.rect(x0, y0, w, h);
    if (!moves) pen.clip("evenodd");
    if (moves) this.#drawDeformed(pen, moves, place);
    else {
      pen.imageSmoothingEnabled = true;
      const half = [w / (n - 1) / 2, h / (n - 1) / 2];
      pen.drawImage(this.#image(), x0 - half[0], y0 - half[1], w + 2 * half[0], h + 2 * half[1]);
    }
    pen.lineWidth = 0.6;
    pen.strokeStyle = this.#data.log ? "rgba(255,255,255,.55)" : "rgba(0,0,0,.45)";
    pen.beginPath();
    (this.#data.walls?.[this.#frame] ?? []).forEach((wall) => trace(wall));
    pen.stroke();
    this.#drawFlow(pen, place, trace, Math.min(w, h));
    pen.restore();
    const { ink, soft } = this.#ink;
    if (!moves) {
      pen.strokeStyle = ink;
      pen.lineWidth = 1.2;
      pen.beginPath();
      if (outline.length) outline.forEach((curve) => trace(curve, true));
      else pen.rect(x0, y0, w, h);
      pen.stroke();
    }
    pen.fillStyle = soft;
    pen.textAlign = "center";
    ticks(left, right).forEach((v) => pen.fillText(number(v), place([v, low])[0], y0 + h + 16));
    pen.fillText(names[0], x0 + w / 2, y0 + h + 34);
    pen.textAlign = "right";
    ticks(low, high).forEach((v) => pen.fillText(number(v), x0 - 8, place([left, v])[1] + 4));
    pen.fillText(names[1], x0 - 34, y0 + 10);
    this.#drawBar(pen, x0 + w + 16, y0, Math.max(h, 80));
    this.#drawMarks(pen, place);
  }

  #drawMarks(pen, place) {
    for (const mark of this.marked ?? []) {
      const spots = mark.map(place);
      pen.strokeStyle = "#fff";
      pen.lineWidth = 4;
      for (let k = 0; k < 2; k++) {
        pen.beginPath();
        if (spots.length > 1) spots.forEach((p, i) => pen[i ? "lineTo" : "moveTo"](...p));
        else pen.arc(...spots[0], 5, 0, 7);
        pen.stroke();
        pen.strokeStyle = "#111";
        pen.lineWidth = 1.6;
      }
    }
  }

  #image() {
    const { n } = this.#data;
    const codes = this.#frames[this.#frame];
    const table = this.#table();
    const canvas = new OffscreenCanvas(n, n);
    const image = new ImageData(n, n);
    // Values just outside the outline continue those inside, so that its edge is smooth.
    const filled = Uint16Array.from(codes);
    for (let pass = 0; pass < 2; pass++) {
      const before = Uint16Array.from(filled);
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
        if (before[i * n + j] !== OUTSIDE) continue;
        let [sum, count] = [0, 0];
        for (const [a, b] of [[-1, 0], [1, 0], [0, -1], [0, 1], [-1, -1], [-1, 1], [1, -1], [1, 1]]) {
          const [r, c] = [i + a, j + b];
          if (r < 0 || c < 0 || r >= n || c >= n || before[r * n + c] === OUTSIDE) continue;
          sum += before[r * n + c];
          count += 1;
        }
        if (count) filled[i * n + j] = sum / count;
      }
    }
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const code = filled[i * n + j];
      const at = 4 * ((n - 1 - i) * n + j);
      if (code === OUTSIDE) continue;
      const k = 3 * this.#index(code);
      image.data[at] = table[k];
      image.data[at + 1] = table[k + 1];
      image.data[at + 2] = table[k + 2];
      image.data[at + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  #drawDeformed(pen, moves, place) {
    const { limits, n, reach } = this.#data;
    const size = moves[0].length;
    const codes = this.#frames[this.#frame];
    const table = this.#table();
    const at = (i, j) => {
      const x = limits[0][0] + (j / (size - 1)) * (limits[0][1] - limits[0][0]) + reach * moves[0][i][j];
      const y = limits[1][0] + (i / (size - 1)) * (limits[1][1] - limits[1][0]) + reach * moves[1][i][j];
      return place([x, y]);
    };
    const code = (i, j) => codes[Math.round((i / (size - 1)) * (n - 1)) * n + Math.round((j / (size - 1)) * (n - 1))];
    for (let i = 0; i + 1 < size; i++) for (let j = 0; j + 1 < size; j++) {
      const own = [code(i, j), code(i, j + 1), code(i + 1, j + 1), code(i + 1, j)];
      if (own.some((c) => c === OUTSIDE)) continue;
      const k = 3 * this.#index((own[0] + own[1] + own[2] + own[3]) / 4);
      pen.fillStyle = pen.strokeStyle = `rgb(${table[k]} ${table[k + 1]} ${table[k + 2]})`;
      pen.beginPath();
      [at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)].forEach((p, m) => pen[m ? "lineTo" : "moveTo"](...p));
      pen.closePath();
      pen.fill();
      pen.lineWidth = 0.5;
      pen.stroke();
    }
  }

  #drawFlow(pen, place, trace, size) {
    pen.strokeStyle = pen.fillStyle = this.#data.log ? "rgba(255,255,255,.85)" : "rgba(255,255,255,.9)";
    pen.lineWidth = 1.1;
    pen.shadowColor = "rgba(0,0,0,.6)";
    pen.shadowBlur = 2;
    const head = ([x, y], angle, r) => {
      pen.beginPath();
      pen.moveTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
      pen.lineTo(x + r * Math.cos(angle + 2.5), y + r * Math.sin(angle + 2.5));
      pen.lineTo(x + r * Math.cos(angle - 2.5), y + r * Math.sin(angle - 2.5));
      pen.fill();
    };
    for (const line of this.#data.streams?.[this.#frame] ?? []) {
      pen.beginPath();
      trace(line);
      pen.stroke();
      const k = Math.floor(line.length / 2);
      const [a, b] = [place(line[k - 1]), place(line[k])];
      head(b, Math.atan2(b[1] - a[1], b[0] - a[0]), 4);
    }
    for (const [x, y, u, v] of this.#data.arrows?.[this.#frame] ?? []) {
      const length = Math.hypot(u, v);
      if (length < 0.02) continue;
      const [px, py] = place([x, y]);
      const reach = (size / 14) * Math.sqrt(length) / length;
      const tip = [px + u * reach, py - v * reach];
      pen.beginPath();
      pen.moveTo(px, py);
      pen.lineTo(...tip);
      pen.stroke();
      head(tip, Math.atan2(-v, u), 3.5);
    }
    pen.shadowBlur = 0;
  }

  #drawBar(pen, x, y, h) {
    const table = this.#table();
    const { low, high, log, signed, symbol } = this.#data;
    const [from, to] = signed ? [-Math.max(-low, high), Math.max(-low, high)] : [low, high];
    for (let k = 0; k < h; k++) {
      const c = 3 * Math.round(255 * (1 - k / h));
      pen.fillStyle = `rgb(${table[c]} ${table[c + 1]} ${table[c + 2]})`;
      pen.fillRect(x, y + k, 12, 1.5);
    }
    const { ink, soft } = this.#ink;
    pen.fillStyle = soft;
    pen.textAlign = "left";
    if (log) {
      const [a, b] = [Math.log10(from), Math.log10(to)];
      for (let p = Math.ceil(a); p <= b; p++) pen.fillText(`1e${p}`, x + 18, y + h * (1 - (p - a) / (b - a)) + 4);
    } else if (to > from) ticks(from, to).forEach((v) => pen.fillText(number(v), x + 18, y + h * (1 - (v - from) / (to - from)) + 4));
    else pen.fillText(number(from), x + 18, y + h / 2);
    pen.fillStyle = ink;
    pen.textAlign = "center";
    pen.fillText(symbol, x + 6, y - 10);
  }

  #drawCurve(pen, width, height) {
    const { x, lines, low, high, names, symbol, log } = this.#data;
    const scale = (v) => (log ? Math.log10(Math.max(v, 1e-300)) : v);
    const values = lines.flat().filter((v) => v !== null && (!log || v > 0)).map(scale);
    let [bottom, top] = log && values.length ? [Math.max(Math.min(...values), Math.max(...values) - 10), Math.max(...values)] : [low, high];
    if (top - bottom < 1e-12 * Math.max(1, Math.abs(top))) [bottom, top] = [bottom - 0.5, top + 0.5];
    const pad = 0.06 * (top - bottom);
    [bottom, top] = [bottom - pad, top + pad];
    const room = { left: 64, right: 20, top: 28, bottom: 44 };
    const [w, h] = [width - room.left - room.right, height - room.top - room.bottom];
    this.#view = { x0: room.left, y0: room.top, w, h };
    const px = (v) => room.left + ((v - x[0]) / (x[x.length - 1] - x[0])) * w;
    const py = (v) => room.top + h - ((v - bottom) / (top - bottom)) * h;
    const { ink, soft, accent, line } = this.#ink;
    pen.strokeStyle = line;
    pen.fillStyle = soft;
    pen.lineWidth = 1;
    pen.textAlign = "right";
    ticks(bottom, top).forEach((v) => {
      pen.beginPath();
      pen.moveTo(room.left, py(v));
      pen.lineTo(room.left + w, py(v));
      pen.stroke();
      pen.fillText(log ? (Number.isInteger(v) ? `1e${v}` : "") : number(v), room.left - 8, py(v) + 4);
    });
    pen.textAlign = "center";
    ticks(x[0], x[x.length - 1]).forEach((v) => pen.fillText(number(v), px(v), room.top + h + 18));
    pen.fillText(names[0], room.left + w / 2, room.top + h + 36);
    for (const wall of this.#data.walls?.[this.#frame] ?? []) {
      pen.beginPath();
      pen.moveTo(px(wall), room.top);
      pen.lineTo(px(wall), room.top + h);
      pen.stroke();
    }
    const draw = (own) => {
      pen.beginPath();
      let open = false;
      own.forEach((v, i) => {
        if (v === null) return (open = false);
        pen[open ? "lineTo" : "moveTo"](px(x[i]), py(scale(v)));
        open = true;
      });
      pen.stroke();
    };
    pen.strokeStyle = line;
    lines.forEach((own, i) => i !== this.#frame && i % 3 === 0 && draw(own));
    pen.strokeStyle = accent;
    pen.lineWidth = 2.2;
    pen.lineJoin = "round";
    draw(lines[this.#frame] ?? lines[0]);
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.fillText(symbol, room.left - 6, 18);
  }

  #drawSurface(pen, width, height) {
    const { n, limits } = this.#data;
    const codes = this.#frames[this.#frame];
    const table = this.#table();
    const size = Math.min(64, n);
    const { about, above } = this.#turn;
    const [c, s, ca, sa] = [Math.cos(about), Math.sin(about), Math.cos(above), Math.sin(above)];
    const spans = limits.map(([a, b]) => b - a);
    const longest = this.#data.in_space ? Math.max(...spans) : 0;
    const shape = spans.map((v) => (longest ? v / longest : 1));
    const scale = Math.min(width, height) * 0.62;
    const spot = (i, j) => {
      const code = codes[Math.round((i / (size - 1)) * (n - 1)) * n + Math.round((j / (size - 1)) * (n - 1))];
      if (code === OUTSIDE) return null;
      const [x, y] = [(j / (size - 1) - 0.5) * shape[0], (i / (size - 1) - 0.5) * shape[1]];
      const z = (code / (OUTSIDE - 1) - 0.5) * 0.5;
      const [a, b] = [c * x - s * y, s * x + c * y];
      return { p: [width / 2 + scale * a, height / 2 - scale * (z * ca + b * sa)], depth: b * ca - z * sa, code };
    };
    const grid = Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, j) => spot(i, j)));
    const quads = [];
    for (let i = 0; i + 1 < size; i++) for (let j = 0; j + 1 < size; j++) {
      const own = [grid[i][j], grid[i][j + 1], grid[i + 1][j + 1], grid[i + 1][j]];
      if (own.every(Boolean)) quads.push({ own, depth: own.reduce((sum, q) => sum + q.depth, 0) });
    }
    quads.sort((one, two) => two.depth - one.depth);
    for (const { own } of quads) {
      const k = 3 * this.#index(own.reduce((sum, q) => sum + q.code, 0) / 4);
      pen.fillStyle = `rgb(${table[k]} ${table[k + 1]} ${table[k + 2]})`;
      pen.strokeStyle = "rgba(0,0,0,.12)";
      pen.lineWidth = 0.5;
      pen.beginPath();
      own.forEach((q, m) => pen[m ? "lineTo" : "moveTo"](...q.p));
      pen.closePath();
      pen.fill();
      pen.stroke();
    }
    this.#drawBar(pen, width - 70, height * 0.2, height * 0.55);
    this.#view = null;
  }

  // A click asks for the value there; a drag cuts along a line, or turns a surface.
  #spot(event) {
    if (!this.#view || !this.#data) return null;
    const area = this.canvas.getBoundingClientRect();
    const { x0, y0, w, h } = this.#view;
    const [a, b] = [(event.clientX - area.left - x0) / w, 1 - (event.clientY - area.top - y0) / h];
    if (a < 0 || a > 1 || b < 0 || b > 1) return null;
    if (this.#data.kind === "curve") return [this.#data.x[0] + a * (this.#data.x[this.#data.x.length - 1] - this.#data.x[0])];
    return this.#data.limits.map(([low, high], axis) => low + [a, b][axis] * (high - low));
  }

  #down(event) {
    this.#drag = { from: this.#spot(event), x: event.clientX, y: event.clientY };
    this.canvas.setPointerCapture(event.pointerId);
  }

  #moved(event) {
    const spot = this.#spot(event);
    if (this.#drag && this.surfaced && this.#data?.kind === "map") {
      this.#turn.about += (event.clientX - this.#drag.x) / 150;
      this.#turn.above = Math.max(0.1, Math.min(1.5, this.#turn.above + (event.clientY - this.#drag.y) / 150));
      Object.assign(this.#drag, { x: event.clientX, y: event.clientY, turned: true });
      return this.#draw();
    }
    if (this.#drag?.from && spot && this.cuts) {
      this.marked = [[this.#drag.from, spot]];
      this.#draw();
    }
    this.hint.textContent = spot ? this.#words(spot) : "";
  }

  #words(spot) {
    const { names, symbol, n, limits, kind, x, lines } = this.#data;
    const places = spot.map((v, i) => `${names[i]} = ${number(v)}`).join(", ");
    if (kind === "curve") {
      const k = Math.round(((spot[0] - x[0]) / (x[x.length - 1] - x[0])) * (x.length - 1));
      const value = lines[this.#frame]?.[k];
      return value === null || value === undefined ? places : `${places}: ${symbol} ≈ ${number(value)}`;
    }
    const [j, i] = limits.map(([low, high], axis) => Math.round(((spot[axis] - low) / (high - low)) * (n - 1)));
    const code = this.#frames[this.#frame]?.[i * n + j];
    return code === undefined || code === OUTSIDE ? places : `${places}: ${symbol} ≈ ${number(this.#value(code))}`;
  }

  #up(event) {
    const spot = this.#spot(event);
    const drag = this.#drag;
    this.#drag = null;
    if (!drag || drag.turned || !spot) return;
    const far = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 6;
    const name = far && this.cuts && drag.from ? "cut" : "probe";
    this.dispatchEvent(new CustomEvent(name, { detail: { from: drag.from ?? spot, to: spot, frame: this.#frame } }));
  }
}

customElements.define("pibls-picture", Picture);
}
