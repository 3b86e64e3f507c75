// Makes the charts interactive. The page is whole without it.
(() => {
  "use strict";
  const DASHES = [[], [7, 3], [3, 3], [9, 3, 2, 3]];
  // The dash pattern of points that no line joins.
  const MARKS = 4;
  const drawn = new Map();
  const charts = new Map();
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const make = (tag, attributes = {}, text = "") => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };

  const trimmed = (value) => {
    if (!Number.isFinite(value)) return "–";
    if (Math.abs(value) >= 99.95) return Math.round(value).toLocaleString("en");
    return String(Number(value.toPrecision(3)));
  };
  const short = (value) => {
    for (const [size, suffix] of [[1e9, "G"], [1e6, "M"], [1e3, "K"]]) {
      if (Math.abs(value) >= size * 0.9995) return trimmed(value / size) + suffix;
    }
    return trimmed(value);
  };
  const show = (axis, value) => {
    if (axis.spacing === "nines") return String(Number((value * 100).toPrecision(value < 0.99 ? 3 : 5)));
    if (axis.unit.startsWith("IOPS")) return short(value);
    if (axis.unit === "%") return trimmed(value * 100);
    return trimmed(value);
  };
  globalThis.floatgate = { make, short, trimmed };
  const say = (axis, value) => `${show(axis, value)} ${axis.unit}`.trim();
  const slotName = ([threads, queue]) => `T${threads}Q${queue}`;
  const place = (chart, x) => {
    if (chart.slots.length) {
      const slot = chart.slots[Math.round(x)];
      return slot ? `${slotName(slot)}, ${slot[0] * slot[1]} outstanding` : "";
    }
    return chart.x.spacing === "nines" ? `${show(chart.x, x)} % of requests` : say(chart.x, x);
  };

  // Values of a stacked area lie upon each other; the tip shows each by itself.
  const stacked = (series) => {
    const tops = [];
    series.forEach((one, index) => {
      tops.push(one.y.map((y, at) => y + (index ? tops[index - 1][at] ?? 0 : 0)));
    });
    return tops;
  };
  // Percentiles that intervals lack are gaps: null where the median of the run has a place and none
  // of theirs is near. Places of other runs are undefined, and no gaps.
  const gapped = (chart) => chart.series.map(({ x, y }, index) => {
    const places = chart.series[index - (index % 3)].x;
    const step = Math.min(...places.slice(1, -1).map((place, at) => place - places[at]));
    let near = 0;
    const far = places.filter((place) => {
      while (near + 1 < x.length && x[near + 1] <= place) near += 1;
      return ![x[near], x[near + 1]].some((it) => Math.abs(it - place) < step * 0.75);
    });
    const rows = [...x.map((place, at) => [place, y[at]]), ...far.map((place) => [place, null])];
    rows.sort((a, b) => a[0] - b[0]);
    return [rows.map(([place]) => place), rows.map(([, value]) => value)];
  });
  const columns = (chart) => {
    const ys = chart.kind === "area" ? stacked(chart.series) : chart.series.map((one) => one.y);
    const tables = chart.kind === "bands" ? gapped(chart)
      : chart.series.map((one, index) => [one.x, ys[index]]);
    const same = tables.every(([x]) => x.length === tables[0][0].length
      && x.every((value, at) => value === tables[0][0][at]));
    return same ? [tables[0][0], ...tables.map(([, y]) => y)] : uPlot.join(tables);
  };

  // 1, 2 or 5 times a power of ten, just beyond the values.
  const logRange = (low, high) => {
    const rounded = (value, digits, fits) => {
      const decade = 10 ** Math.floor(Math.log10(value) + 1e-9);
      return digits.map((digit) => digit * decade).find((it) => fits(it, value));
    };
    const from = rounded(low, [5, 2, 1], (it, value) => it <= value * 1.0001);
    const to = rounded(high, [1, 2, 5, 10], (it, value) => it >= value * 0.9999);
    return from < to ? [from, to] : [from, from * 10];
  };

  const scaleOf = (axis, isX, chart) => {
    if (chart.slots.length && isX) return { time: false, range: [-0.5, chart.slots.length - 0.5] };
    if (axis.spacing === "nines") {
      return { time: false, distr: 100, fwd: (v) => -Math.log10(1 - Math.min(v, 0.9999999)),
        bwd: (v) => 1 - 10 ** -v, range: (u, low, high) => [low ?? 0.5, high ?? 0.9999] };
    }
    if (axis.spacing === "doublings") return { time: false, distr: 3, log: 2 };
    if (axis.spacing === "log") {
      return { distr: 3, range: (u, low, high) => logRange(...(axis.domain ?? [low || 0.1, high || 1])) };
    }
    if (isX) return { time: false };
    if (axis.domain) return { range: () => (axis.domain[0] > 0 ? axis.domain : [0, axis.domain[1] * 1.06]) };
    return { range: (u, low, high) => [0, high > 0 ? high * 1.06 : 1] };
  };

  // Powers of ten, and 2 and 5 times them where the scale is short.
  const round = ({ min, max }, value) => {
    const digit = Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
    return max / min < 99 ? [1, 2, 5].includes(digit) : digit === 1;
  };

  const axisOf = (axis, isX, chart, plotWidth) => {
    const options = {
      stroke: colour("--soft"), font: "12px system-ui, sans-serif", // whole pixels: uPlot scales it
      labelFont: "12px system-ui, sans-serif", labelSize: 16, labelGap: 0,
      grid: { stroke: isX ? "transparent" : colour("--grid"), width: 1 },
      ticks: { stroke: isX ? colour("--faint") : "transparent", size: 4, width: 1 },
      values: (u, splits) => splits.map((value) => (value === null ? "" : show(axis, value))),
      gap: 5,
    };
    if (!isX && axis.spacing === "log") {
      const filter = (u, splits) => splits.map((value) => (round(u.scales.y, value) ? value : null));
      return { ...options, size: 48, filter, grid: { ...options.grid, filter } };
    }
    if (!isX) return { ...options, size: 48 };
    if (chart.slots.length) {
      const narrow = plotWidth < 420;
      return { ...options, size: narrow ? 38 : 54, lineGap: 1.3,
        font: narrow ? "10px system-ui, sans-serif" : options.font,
        splits: () => chart.slots.map((_, at) => at),
        values: () => chart.slots.map(([t, q]) => (narrow ? `${t}\n${q}` : `T${t}\nQ${q}\n${t * q}`)) };
    }
    options.label = axis.unit ? `${axis.label}, ${axis.unit}` : axis.label;
    options.size = 26;
    if (axis.spacing === "doublings") {
      options.splits = () => [...new Set(chart.series.flatMap((one) => one.x))].sort((a, b) => a - b);
      options.filter = (u, splits) => splits;
    }
    if (axis.spacing === "nines") {
      options.splits = (u) => [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
        .filter((share) => share <= u.scales.x.max + 1e-9);
      options.filter = (u, splits) => splits;
    }
    return options;
  };

  const marks = (chart) => (u) => {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    chart.windows.forEach(([tone, from, to, achieved], row) => {
      const left = Math.max(u.valToPos(from, "x", true), bbox.left);
      const right = Math.min(u.valToPos(to, "x", true), bbox.left + bbox.width);
      if (right <= left) return;
      const top = bbox.top + row * 5 * ratio;
      ctx.save();
      ctx.fillStyle = colour(`--t${tone}`);
      ctx.globalAlpha = achieved && chart.windows.length <= 2 ? 0.045 : 0;
      ctx.fillRect(left, top, right - left, bbox.top + bbox.height - top);
      ctx.globalAlpha = achieved ? 0.8 : 0.35;
      ctx.fillRect(left, top, right - left, 3 * ratio);
      ctx.restore();
    });
  };
  // The last value, the mean or the greatest of what is in sight.
  const endOf = (chart, u, index) => {
    const { min, max } = u.scales.x;
    const inSight = u.data[index].filter((value, at) => value !== undefined
      && u.data[0][at] >= min && u.data[0][at] <= max);
    const values = inSight.filter((value) => value !== null);
    if (!values.length) return null;
    if (chart.ends === "max") return values.reduce((a, b) => Math.max(a, b));
    if (chart.ends === "mean") return values.reduce((a, b) => a + b, 0) / values.length;
    return inSight.at(-1);
  };
  const ends = (chart) => (u) => {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio;
    const labels = [];
    chart.series.forEach((one, index) => {
      if (!u.series[index + 1].show || !one.y.length) return;
      if (chart.kind === "area" && index < chart.series.length - 1) return;
      const value = endOf(chart, u, index + 1);
      if (value == null) return;
      labels.push({ y: u.valToPos(value, "y", true), text: show(chart.y, value),
        colour: chart.kind === "area" ? colour("--ink") : colour(`--t${one.tone}`) });
    });
    labels.sort((a, b) => a.y - b.y);
    let free = bbox.top + 4 * ratio;
    for (const label of labels) { label.y = Math.max(label.y, free); free = label.y + 13 * ratio; }
    free = bbox.top + bbox.height;
    for (const label of labels.reverse()) {
      label.y = Math.min(label.y, free);
      free = label.y - 13 * ratio;
    }
    ctx.save();
    ctx.font = `600 ${11.5 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = colour("--soft");
    ctx.fillText(chart.ends, bbox.left + bbox.width + 6 * ratio, bbox.top - 7 * ratio);
    ctx.restore();
    for (const { y, text, colour } of labels) {
      ctx.fillStyle = colour;
      ctx.fillText(text, bbox.left + bbox.width + 6 * ratio, y);
    }
    ctx.restore();
  };

  const tip = (chart) => {
    const box = make("div", { class: "tip", hidden: "" });
    return {
      hooks: {
        init: (u) => {
          u.over.append(box);
          u.over.addEventListener("mouseleave", () => { box.hidden = true; });
        },
        setCursor: (u) => {
          const { idx, left, top } = u.cursor;
          if (idx == null || left < 0) { box.hidden = true; return; }
          box.replaceChildren(make("p", {}, place(chart, u.data[0][idx])));
          chart.series.forEach((one, index) => {
            if (!u.series[index + 1].show) return;
            let value = u.data[index + 1][idx];
            if (value == null) return;
            if (chart.kind === "area") value -= index ? u.data[index][idx] : 0;
            const line = make("p", { class: `t${one.tone}` });
            line.append(make("i"), `${one.name} `, make("b", {}, say(chart.y, value)));
            box.append(line);
          });
          box.hidden = false;
          const right = left > u.over.clientWidth / 2;
          box.style.left = right ? "" : `${left + 14}px`;
          box.style.right = right ? `${u.over.clientWidth - left + 14}px` : "";
          const lowest = u.over.clientHeight - box.offsetHeight;
          box.style.top = `${Math.max(0, Math.min(top - 20, lowest))}px`;
        },
      },
    };
  };

  const seriesOf = (chart) => chart.series.map((one, index) => {
    const area = chart.kind === "area";
    const few = one.y.length <= 24 && chart.kind === "lines" && chart.x.spacing !== "nines";
    const thin = chart.kind === "bands" && index % 3 > 0;
    return {
      label: one.name, stroke: colour(`--t${one.tone}`),
      width: area || one.dash === MARKS ? 0 : thin ? 0.8 : 1.6,
      dash: DASHES[one.dash], spanGaps: chart.kind !== "bands",
      fill: area ? colour(`--t${one.tone}`) : undefined,
      points: { show: few || one.dash === MARKS, size: 6, fill: colour("--paper"), width: 1.6 },
      show: one.show ?? true, index,
    };
  });

  // Layers of an area are filled down to the one below; bands between their three lines.
  const bandsOf = (chart) => {
    if (chart.kind === "area") {
      return chart.series.slice(1).map((_, index) => ({ series: [index + 2, index + 1] }));
    }
    if (chart.kind !== "bands") return [];
    return chart.series.flatMap(({ tone }, index) => (index % 3 === 0 ? [] : [{
      series: [index + 1, index], fill: `${colour(`--t${tone}`)}${index % 3 === 1 ? "44" : "20"}`,
    }]));
  };

  // Charts of one section over the same time move together.
  const partners = (figure) => {
    const part = figure.closest("section");
    const own = charts.get(figure);
    // Percentiles have no extent in common: each line ends where its requests do.
    return own.x.spacing === "nines" ? [] : [...drawn].filter(([other]) => other !== figure && other.closest("section") === part
      && charts.get(other).x.label === own.x.label && charts.get(other).x.unit === own.x.unit)
      .map(([, u]) => u);
  };
  let zooming = false;
  const linked = (figure) => (u, key) => {
    if (key !== "x" || zooming || u.status === 0 || !charts.get(figure) || drawn.get(figure) !== u) return;
    zooming = true;
    const { min, max } = u.scales.x;
    partners(figure).forEach((other) => other.setScale("x", { min, max }));
    zooming = false;
  };

  const draw = (figure, chart) => {
    const plot = figure.querySelector(".plot");
    drawn.get(figure)?.destroy();
    const wide = figure.classList.contains("wide");
    const height = () => (wide ? Math.max(180, Math.min(210, plot.clientWidth * 0.4))
      : Math.max(240, Math.min(320, plot.clientWidth * 0.48)));
    const u = new uPlot({
      width: plot.clientWidth, height: height(), padding: [16, 52, 0, 0],
      legend: { show: false }, plugins: [tip(chart)], bands: bandsOf(chart),
      cursor: { drag: { x: true, y: false }, y: false,
        sync: chart.slots.length ? undefined : { setSeries: false, scales: ["x", null],
          key: `${figure.closest("section")?.id}, ${chart.x.label}, ${chart.x.unit}` },
        points: { size: 7, fill: (_, index) => colour(`--t${chart.series[index - 1].tone}`) } },
      scales: { x: scaleOf(chart.x, true, chart), y: scaleOf(chart.y, false, chart) },
      axes: [axisOf(chart.x, true, chart, plot.clientWidth), axisOf(chart.y, false, chart)],
      series: [{}, ...seriesOf(chart)],
      hooks: { drawClear: [marks(chart)], draw: [ends(chart)], setScale: [linked(figure)] },
    }, columns(chart), plot);
    u.root.setAttribute("aria-hidden", "true");
    plot.classList.add("drawn");
    drawn.set(figure, u);
  };

  const csv = (chart) => {
    const quote = (value) => {
      const text = String(value ?? "");
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const y = chart.y.unit === "%" ? "share" : chart.y.unit;
    const head = ["series", `${chart.x.label} ${chart.x.unit}`, `${chart.y.label} ${y}`];
    const rows = [head.map((text) => text.trim())];
    if (chart.kind === "heat") {
      const [{ name, x, y, cells }] = chart.series;
      rows[0][1] += ", end of the cell";
      rows[0][2] += ", upper end of the cell";
      rows[0].push("share of requests, 0 to 1");
      cells.forEach(([first, ...shares], at) => {
        let row = first;
        let last = 0;
        const cell = (share) => {
          if (share > 0) rows.push([name, x[at], y[row], share / 1e5]);
          row += 1;
          last = share;
        };
        // A negative number says how often the share before it comes again.
        for (const one of shares) {
          for (let left = Math.max(-one, 1); left > 0; left -= 1) cell(one < 0 ? last : one);
        }
      });
      return rows.map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
    }
    for (const one of chart.series) {
      one.y.forEach((value, at) => {
        const slot = chart.slots[one.x?.[at]];
        const label = slot ? slotName(slot) : one.labels?.[at];
        rows.push([one.name, one.x && !slot ? one.x[at] : label, value]);
        if (chart.kind === "curve") rows.at(-1).push(label);
      });
    }
    return rows.map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
  };

  // The static chart as a picture of its own: what the style sheet says is written into it.
  const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin",
    "opacity", "font-size", "font-weight"];
  const svg = (figure, chart) => {
    const source = figure.querySelector(".plot > svg");
    const copy = source.cloneNode(true);
    const [from, to] = [source, copy].map((it) => [...it.querySelectorAll("*")]);
    from.forEach((element, index) => {
      const style = getComputedStyle(element);
      for (const name of STYLES) to[index].style.setProperty(name, style.getPropertyValue(name));
    });
    const [, , width, height] = source.getAttribute("viewBox").split(" ").map(Number);
    const font = "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    const text = (x, y, content, style) => {
      const element = document.createElementNS(source.namespaceURI, "text");
      element.setAttribute("x", x);
      element.setAttribute("y", y);
      element.setAttribute("style", style);
      element.textContent = content;
      return element;
    };
    const names = [...legendOf(figure)?.querySelectorAll("li") ?? []];
    const top = 44 + 15 * names.length;
    const paper = document.createElementNS(source.namespaceURI, "rect");
    for (const [name, value] of [["x", -10], ["y", -top], ["width", width + 20],
      ["height", height + top + 10], ["fill", colour("--paper")]]) paper.setAttribute(name, value);
    const unit = figure.querySelector(".unit").textContent;
    const title = unit ? `${chart.title}, ${unit}` : chart.title;
    copy.prepend(paper, text(0, 22 - top, title, `font-size:15px;font-weight:640;fill:${colour("--ink")}`),
      ...names.map((item, at) => text(0, 41 - top + 15 * at, `■ ${item.textContent}`,
        `font-size:11.5px;fill:${getComputedStyle(item).getPropertyValue("--tone") || colour("--soft")}`)));
    copy.setAttribute("xmlns", source.namespaceURI);
    copy.setAttribute("viewBox", `-10 ${-top} ${width + 20} ${height + top + 10}`);
    copy.setAttribute("width", width + 20);
    copy.setAttribute("height", height + top + 10);
    copy.setAttribute("style", `font-family:${font}`);
    return new XMLSerializer().serializeToString(copy);
  };
  const png = (figure, chart) => new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas");
      [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg(figure, chart))}`;
  });
  const FORMATS = [
    ["CSV", "csv", (figure, chart) => new Blob([csv(chart)], { type: "text/csv" })],
    ["SVG", "svg", (figure, chart) => new Blob([svg(figure, chart)], { type: "image/svg+xml" })],
    ["PNG", "png", png],
  ];
  const save = async (figure, chart, suffix, made) => {
    const url = URL.createObjectURL(await made(figure, chart));
    const link = make("a", { href: url, download: `${figure.id}.${suffix}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };

  // The legend of a chart, or of the group that it is in: that one works on all of its charts.
  const legendOf = (figure) => figure.querySelector(".legend")
    ?? figure.closest(".group")?.querySelector(":scope > .legend");
  const seriesAt = (chart, item) => (chart.kind === "bands" ? [item * 3, item * 3 + 1, item * 3 + 2]
    : [item]);
  const toggled = (figure, chart, item, on) => seriesAt(chart, item).forEach((index) => {
    if (!chart.series[index]) return;
    chart.series[index].show = on;
    drawn.get(figure)?.setSeries(index + 1, { show: on });
  });
  const legend = (figure, chart) => {
    const list = legendOf(figure);
    if (!list) return;
    const own = () => (figure.contains(list) ? [figure]
      : [...list.parentElement.querySelectorAll(":scope > .charts > figure")]);
    list.querySelectorAll("li").forEach((item, at) => {
      const known = item.querySelector("button");
      if (known) {
        toggled(figure, chart, at, known.getAttribute("aria-pressed") === "true");
        return;
      }
      const button = make("button", { type: "button", "aria-pressed": "true",
        title: "Show or hide" });
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", on);
        for (const one of own()) if (charts.has(one)) toggled(one, charts.get(one), at, on);
      });
    });
  };
  const tools = (figure, chart) => {
    const bar = make("div", { class: "tools" });
    if (chart.y.switchable) {
      const label = () => (chart.y.spacing === "log" ? "Linear scale" : "Log scale");
      const button = make("button", { type: "button" }, label());
      button.addEventListener("click", () => {
        chart.y.spacing = chart.y.spacing === "log" ? "linear" : "log";
        button.textContent = label();
        const unit = figure.querySelector(".unit");
        unit.textContent = chart.y.unit + (chart.y.spacing === "log" ? ", log scale" : "");
        draw(figure, chart);
      });
      bar.append(button);
    }
    const menu = make("details", { class: "menu" });
    const list = make("div");
    // A chart that a script added has no static picture.
    const isStatic = figure.querySelector(".plot > svg");
    for (const [name, suffix, made] of isStatic ? FORMATS : FORMATS.slice(0, 1)) {
      const button = make("button", { type: "button" }, name);
      button.addEventListener("click", () => {
        menu.open = false;
        save(figure, chart, suffix, made);
      });
      list.append(button);
    }
    menu.append(make("summary", { "aria-label": `Save ${chart.title}` }, "Save"), list);
    menu.addEventListener("focusout", ({ relatedTarget }) => {
      if (!menu.contains(relatedTarget)) menu.open = false;
    });
    bar.append(menu);
    figure.querySelector("header").append(bar);
  };

  const interactive = (chart) => ["lines", "area", "bands"].includes(chart.kind);
  const open = (figure) => {
    const chart = JSON.parse(figure.querySelector("script").textContent);
    // Where a series has the same places as the first one, they are written once.
    if (interactive(chart) || chart.kind === "curve") {
      const x = chart.series.find((one) => one.x?.length)?.x ?? [];
      for (const one of chart.series) one.x ??= x;
    }
    charts.set(figure, chart);
    tools(figure, chart);
    // Only the static chart has intervals.
    if (!interactive(chart) || figure.querySelector(".line.error")) return;
    // Areas cannot lose a layer without lying about the sum.
    if (chart.kind !== "area") legend(figure, chart);
    draw(figure, chart);
  };

  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      open(target);
    }
  }, { rootMargin: "300px" });
  document.querySelectorAll("figure.chart").forEach((figure) => seen.observe(figure));

  // Charts that another script adds announce themselves, and may be taken away again.
  document.addEventListener("figure", ({ target }) => seen.observe(target));
  const redraw = () => drawn.forEach((_, figure) => {
    if (figure.isConnected) draw(figure, charts.get(figure));
    else drawn.delete(figure);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 150); });

  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const current = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  document.querySelectorAll("section[id], footer[id]").forEach((part) => current.observe(part));
})();
