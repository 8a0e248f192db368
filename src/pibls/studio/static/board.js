// The drawing board: a domain as SVG, with handles that are dragged and edges that are clicked.
{
const NS = "http://www.w3.org/2000/svg";
const make = (tag, attributes = {}, parent = null) => {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.appendChild(node);
  return node;
};

class Board extends HTMLElement {
  #data = null;
  #held = null;
  #svg = null;
  #scale = 1;
  #chosen = null;
  #condition = null;
  #about = Math.PI / 4;
  #above = Math.PI / 6;
  #turning = null;

  connectedCallback() {
    this.#svg ??= make("svg", { role: "group", "aria-label": "Drawing of the domain" }, this);
    new ResizeObserver(() => this.#draw()).observe(this);
    this.addEventListener("pointerdown", (event) => {
      if (this.#data?.dimension === 3) this.#turning = { x: event.clientX, y: event.clientY, begun: false };
    });
    this.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) this.addEventListener(name, (event) => this.#drop(event));
    this.#draw();
  }

  set data(value) {
    this.#data = value;
    this.#draw();
  }

  get data() {
    return this.#data;
  }

  mark(chosen, condition) {
    if (this.#chosen === chosen && this.#condition === condition) return;
    [this.#chosen, this.#condition] = [chosen, condition];
    this.#draw();
  }

  #say(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #choose({ name, path, part }) {
    this.#say("edge", { name, path, part });
  }

  // Show a body from another side.
  turn(about = Math.PI / 4, above = 0) {
    this.#about += about;
    this.#above = Math.max(-1.5, Math.min(1.5, this.#above + above));
    this.#draw();
  }

  // A point in space on the page, and how near it is.
  #seen([x, y, z]) {
    const [c, s, ca, sa] = [Math.cos(this.#about), Math.sin(this.#about), Math.cos(this.#above), Math.sin(this.#above)];
    return [c * y - s * x, ca * z - sa * (c * x + s * y), ca * (c * x + s * y) + sa * z];
  }

  // From coordinates of the domain to the page, and back.
  #place([x, y]) {
    const { left, top } = this.#frame;
    return [left + (x - this.#box[0][0]) * this.#scale, top - (y - this.#box[1][0]) * this.#scale];
  }

  #coordinates(event) {
    const area = this.#svg.getBoundingClientRect();
    const { left, top } = this.#frame;
    const x = this.#box[0][0] + (event.clientX - area.left - left) / this.#scale;
    return [x, this.#box[1][0] + (top - event.clientY + area.top) / this.#scale];
  }

  #measure() {
    const { dimension, bounds, edges } = this.#data;
    let box = dimension === 1 ? [bounds[0], [-0.5, 0.5].map((v) => v * 0.4 * (bounds[0][1] - bounds[0][0]))] : bounds;
    if (dimension === 3) {
      const all = edges.flatMap((edge) => edge.facets.flatMap((facet) => facet.points.map((p) => this.#seen(p))));
      const range = (axis) => all.reduce(([low, high], p) => [Math.min(low, p[axis]), Math.max(high, p[axis])], [Infinity, -Infinity]);
      box = all.length ? [range(0), range(1)] : [[0, 1], [0, 1]];
    }
    // While something is dragged, the page stays where it is.
    if (!this.#held || !this.#box) this.#box = box;
    const [width, height] = [this.clientWidth || 400, this.clientHeight || 320];
    const margin = Math.min(64, width * 0.16);
    const spans = this.#box.map(([low, high]) => high - low || 1);
    this.#scale = Math.min((width - 2 * margin) / spans[0], (height - 2 * margin) / spans[1]);
    this.#frame = { left: (width - spans[0] * this.#scale) / 2, top: (height + spans[1] * this.#scale) / 2 };
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  }
  #box = null;
  #frame = null;

  #draw() {
    if (!this.#data?.drawable || !this.#svg || !this.clientWidth) return;
    const focus = document.activeElement?.dataset?.key;
    this.#measure();
    this.#svg.replaceChildren();
    const path = (points, close) =>
      points.map((p, i) => `${i ? "L" : "M"}${this.#place(p).map((v) => v.toFixed(1)).join(" ")}`).join("") + (close ? "Z" : "");
    if (this.#data.dimension === 2) {
      make("path", { d: this.#data.outline.map((c) => path(c, true)).join(""), class: "inside", "fill-rule": "evenodd" }, this.#svg);
    }
    if (this.#data.dimension === 1) {
      make("path", { d: path([[this.#data.bounds[0][0], 0], [this.#data.bounds[0][1], 0]]), class: "rod" }, this.#svg);
    }
    if (this.#data.dimension === 3) this.#drawFaces(path);
    else this.#data.edges.forEach((edge) => this.#drawEdge(edge, path));
    this.#data.edges.forEach((edge) => this.#drawName(edge));
    (this.#data.handles ?? []).forEach((handle, number) => this.#drawHandle(handle, number));
    if (focus) this.#svg.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  }

  #classOf(edge) {
    const bare = (edge.curves ?? []).some((curve) => curve.bare);
    const chosen = this.#chosen === edge.name || edge.conditions.includes(this.#condition);
    return `edge${bare ? " bare" : ""}${chosen ? " chosen" : ""}`;
  }

  #button(node, edge) {
    const bare = edge.curves?.some((curve) => curve.bare);
    const words = bare ? "no condition" : edge.conditions.length ? `condition ${edge.conditions.map((i) => i + 1).join(", ")}` : "";
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-label", `${this.#data.dimension === 3 ? "Face" : "Edge"} ${edge.name}${words ? `: ${words}` : ""}`);
    node.dataset.key = `edge ${edge.name}`;
    node.addEventListener("click", () => this.#choose(edge));
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.#choose(edge);
      }
    });
  }

  #drawEdge(edge, path) {
    const group = make("g", { class: this.#classOf(edge) }, this.#svg);
    for (const curve of edge.curves) {
      if (curve.points.length === 1) {
        const [cx, cy] = this.#place(curve.points[0]);
        make("circle", { cx, cy, r: 7, class: curve.bare ? "end bare" : "end" }, group);
      } else {
        make("path", { d: path(curve.points), class: curve.bare ? "line bare" : "line" }, group);
        make("path", { d: path(curve.points), class: "reach" }, group);
      }
    }
    this.#button(group, edge);
  }

  #drawFaces(path) {
    const facets = this.#data.edges.flatMap((edge) => edge.facets.map(({ points, light }) => {
      const seen = points.map((p) => this.#seen(p));
      return { edge, light, seen, depth: seen.reduce((sum, p) => sum + p[2], 0) / seen.length };
    }));
    facets.sort((one, two) => one.depth - two.depth);
    const done = new Set();
    for (const { seen, light, edge } of facets) {
      const face = make("path", { d: path(seen, true), class: `face ${this.#classOf(edge)}` }, this.#svg);
      face.style.setProperty("--light", light);
      face.edge = edge;
      face.addEventListener("click", () => this.#choose(edge));
      if (!done.has(edge.name)) this.#button(face, edge);
      done.add(edge.name);
    }
    // A face has its name in its middle if one sees it; of what lies behind there is no name.
    const area = this.#svg.getBoundingClientRect();
    for (const edge of this.#data.edges) {
      const own = facets.filter((facet) => facet.edge === edge);
      const spots = own.map(({ seen }) => [0, 1].map((axis) => seen.reduce((sum, p) => sum + p[axis], 0) / seen.length));
      const middle = [0, 1].map((axis) => spots.reduce((sum, p) => sum + p[axis], 0) / spots.length);
      const far = (p) => Math.hypot(p[0] - middle[0], p[1] - middle[1]);
      spots.sort((one, two) => far(one) - far(two));
      const free = (p) => {
        const [x, y] = this.#place(p);
        const top = document.elementFromPoint(area.left + x, area.top + y);
        return top?.edge ? top.edge === edge : !this.contains(top);
      };
      edge.middle = spots.slice(0, 40).find(free) ?? null;
    }
  }

  #drawName(edge) {
    if (this.#data.edges.length > 24 || !edge.middle) return;
    const [x, y] = this.#place(edge.middle);
    const [nx, ny] = edge.normal ?? [0, 0];
    const bare = edge.curves?.some((curve) => curve.bare);
    const anchor = nx > 0.4 ? "start" : nx < -0.4 ? "end" : "middle";
    const label = make("text", { x: x + 12 * nx, y: y - 12 * ny + 4, "text-anchor": anchor, class: `name${bare ? " bare" : ""}${this.#data.dimension < 3 ? " flat" : ""}` }, this.#svg);
    label.textContent = edge.name;
    if (this.#data.dimension < 3) label.addEventListener("click", () => this.#choose(edge));
  }

  #drawHandle(handle, number) {
    const [x, y] = this.#place([handle.x, handle.y]);
    const group = make("g", { class: `handle ${handle.kind}`, transform: `translate(${x} ${y})`, tabindex: "0", role: "slider" }, this.#svg);
    group.setAttribute("aria-label", `${handle.label} of ${handle.shape}`);
    group.setAttribute("aria-valuetext", `${handle.x.toPrecision(3)}, ${handle.y.toPrecision(3)}`);
    group.dataset.key = `handle ${number}`;
    make("circle", { r: 14, class: "reach" }, group);
    if (handle.kind === "move") make("path", { d: "M-6 0H6M0 -6V6", class: "mark" }, group);
    else make(handle.kind === "radius" ? "circle" : "rect", handle.kind === "radius" ? { r: 5, class: "mark" } : { x: -4.5, y: -4.5, width: 9, height: 9, rx: 2, class: "mark" }, group);
    group.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.#held = { number, pointer: event.pointerId, last: 0 };
      this.setPointerCapture(event.pointerId);
    });
    group.addEventListener("keydown", (event) => {
      const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      if (!(event.key in ways)) return;
      event.preventDefault();
      const by = this.#data.step * (event.shiftKey ? 10 : 1);
      const [dx, dy] = ways[event.key];
      this.#say("moved", { number, x: handle.x + by * dx, y: handle.y + by * dy, done: true });
    });
  }

  #turned(event) {
    const by = [event.clientX - this.#turning.x, event.clientY - this.#turning.y];
    if (!this.#turning.begun && Math.hypot(...by) < 5) return;
    if (!this.#turning.begun) this.setPointerCapture(event.pointerId);
    this.#turning = { x: event.clientX, y: event.clientY, begun: true };
    this.turn(-by[0] / 150, by[1] / 150);
  }

  #move(event) {
    if (this.#turning) return this.#turned(event);
    if (!this.#held || event.pointerId !== this.#held.pointer) return;
    const [x, y] = this.#coordinates(event);
    const handle = this.#svg.querySelector(`[data-key="handle ${this.#held.number}"]`);
    handle?.setAttribute("transform", `translate(${this.#place([x, y]).join(" ")})`);
    if (event.timeStamp - this.#held.last < 40) return;
    this.#held.last = event.timeStamp;
    this.#say("moved", { number: this.#held.number, x, y, done: false });
  }

  #drop(event) {
    this.#turning = null;
    if (!this.#held || event.pointerId !== this.#held.pointer) return;
    const [x, y] = this.#coordinates(event);
    const number = this.#held.number;
    this.#held = null;
    this.#say("moved", { number, x, y, done: true });
  }
}

customElements.define("pibls-board", Board);
}
