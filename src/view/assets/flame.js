// The flame graph page. The tree comes in preorder (see "data" below); a node's descendants are the
// nodes up to end[node], so that drawing skips whatever is too narrow to see in one step. The canvas shows
// the range [view.a, view.b] of the root's value; zooming and panning only change that range.
"use strict";
(function () {
	const ROW = 18, NARROWEST = 0.5, ZOOM_MS = 170, KIND_GROUP = 15, KIND_HIDDEN = 14;
	const KINDS = ["user", "kernel", "JIT", "vdso", "guest"];
	// Okabe-Ito hues as light tints: hue, saturation %, lightness % of the darkest shade.
	const TINTS = [[203, 66, 70], [37, 88, 65], [162, 42, 63], [326, 48, 76], [55, 78, 66]];
	const HASH_TINTS = TINTS.concat([[17, 75, 73], [228, 52, 77], [90, 38, 66]]);
	const $ = (id) => document.getElementById(id);
	const data = JSON.parse($("data").textContent);
	const canvas = $("graph"), ctx = canvas.getContext("2d"), scroll = $("scroll"), tip = $("tip");
	const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

	const name = (frame) => data.kinds[frame] === KIND_HIDDEN ? "(small frames)" : data.strings[data.names[frame]];
	const number = (value) => Math.round(value).toLocaleString("en-US");
	const percent = (share) => (share * 100).toFixed(2) + "%";

	// ---- state -------------------------------------------------------------------------------------

	const trees = flameTrees(data, name), down = trees.topDown();
	let up = null, tree = down, icicle = data.icicle, color = data.color;
	let view = {a: 0, b: tree.total[0]}, zoomed = 0, selected = 0, hover = -1, animation = 0, frameAsked = 0;
	let search = null, matches = [], match = -1;
	let width = 0, height = 0, content = 0, charWidth = 7, theme = {};
	const pointsOf = [], colors = [];
	let maxChange = 0;

	const change = (i) => tree.total[i] / tree.total[0] - (tree.baseTotal[0] ? tree.baseTotal[i] / tree.baseTotal[0] : 0);

	function frameColor(frame) {
		const kind = data.kinds[frame], hash = data.hashes[data.names[frame]];
		if (kind === KIND_HIDDEN)
			return theme.merged;
		if (kind === KIND_GROUP)
			return "hsl(215 10% 82%)";
		let tint = TINTS[kind] || TINTS[0];
		if (color !== "kind") {
			const of = data.hashes[color === "object" ? data.objects[frame] : data.names[frame]];
			tint = HASH_TINTS[Math.floor(of / 64) % HASH_TINTS.length];
		}
		const hue = tint[0] + (Math.floor(hash / 16) % 16 - 7.5) * 0.9;
		return "hsl(" + hue.toFixed(1) + " " + tint[1] + "% " + (tint[2] + hash % 16 * 0.75).toFixed(2) + "%)";
	}

	function nodeColor(i) {
		if (data.diff && i > 0) {
			const share = maxChange ? change(i) / maxChange : 0, strength = Math.sqrt(Math.min(Math.abs(share), 1));
			if (strength < 0.02)
				return "#e4e4e4";
			return share > 0 ? "hsl(30 " + (35 + 60 * strength) + "% " + (88 - 28 * strength) + "%)"
					 : "hsl(206 " + (35 + 40 * strength) + "% " + (88 - 24 * strength) + "%)";
		}
		const frame = tree.frame[i];
		return colors[frame] || (colors[frame] = frameColor(frame));
	}

	// ---- drawing -----------------------------------------------------------------------------------

	function readTheme() {
		const style = getComputedStyle(document.documentElement);
		for (const key of ["paper", "ink", "quiet", "merged", "select", "mono", "accent"])
			theme[key] = style.getPropertyValue("--" + key).trim();
		colors.length = 0;
	}

	function resize() {
		const ratio = window.devicePixelRatio || 1;
		const bottom = !icicle && scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 2;
		height = scroll.clientHeight;
		content = Math.max((tree.maxDepth + 1) * ROW + 4, height);
		$("spacer").style.height = content + "px";
		width = $("spacer").clientWidth;
		canvas.style.height = height + "px";
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.font = "11.5px " + theme.mono;
		ctx.textBaseline = "middle";
		charWidth = ctx.measureText("MMMMMMMMMM").width / 10;
		if (bottom)
			scroll.scrollTop = scroll.scrollHeight;
		ask();
	}

	const rowY = (depth) => (icicle ? depth * ROW : content - (depth + 1) * ROW) - scroll.scrollTop;

	function label(i, x, w, y) {
		const frame = tree.frame[i], room = Math.floor((w - 8) / charWidth);
		if (room < 3)
			return;
		const points = pointsOf[frame] || (pointsOf[frame] = Array.from(name(frame)));
		ctx.fillText(points.length <= room ? name(frame) : points.slice(0, room - 1).join("") + "\u2026", x + 4, y);
	}

	function outline(i, scale, colour, line) {
		const x = (tree.x[i] - view.a) * scale, left = Math.max(x, 0);
		const right = Math.min(x + tree.total[i] * scale, width);
		if (right <= left)
			return;
		ctx.strokeStyle = colour;
		ctx.lineWidth = line;
		ctx.strokeRect(left + line / 2, rowY(tree.depth[i]) + line / 2, Math.max(right - left - line, 1), ROW - 1 - line);
	}

	// Neighbours too narrow to see become one grey block per row; blocks[depth] is where the open one ends.
	function drawRects(scale, labels) {
		const blocks = new Map(), zoomDepth = tree.depth[zoomed];
		for (let i = 0; i < tree.n;) {
			const x = (tree.x[i] - view.a) * scale, w = tree.total[i] * scale, depth = tree.depth[i], y = rowY(depth);
			if (x + w <= 0 || x >= width || (icicle ? y > height : y < -ROW)) {
				i = tree.end[i];
				continue;
			}
			if (w < NARROWEST) {
				if (w > 0 && x > (blocks.has(depth) ? blocks.get(depth) : -1)) {
					ctx.fillStyle = theme.merged;
					ctx.fillRect(x, y, 1, ROW - 1);
					blocks.set(depth, x + 1);
				}
				i = tree.end[i];
				continue;
			}
			if (y < height && y > -ROW) {
				const left = Math.max(x, 0), right = Math.min(x + w, width), wide = right - left;
				const dim = search && !search[tree.frame[i]];
				ctx.globalAlpha = dim ? 0.25 : depth < zoomDepth ? 0.6 : 1;
				ctx.fillStyle = nodeColor(i);
				ctx.fillRect(left, y, wide > 2 ? wide - 0.6 : wide, ROW - 1);
				if (wide > 3 * charWidth + 8)
					labels.push(i, left, wide, y, dim ? 1 : 0);
			}
			i++;
		}
		ctx.globalAlpha = 1;
	}

	function draw() {
		const scale = width / (view.b - view.a), labels = [];
		frameAsked = 0;
		ctx.clearRect(0, 0, width, height);
		drawRects(scale, labels);
		for (let k = 0; k < labels.length; k += 5) {
			if (k === 0 || labels[k + 4] !== labels[k - 1])
				ctx.fillStyle = labels[k + 4] ? theme.quiet : "#14171a";
			label(labels[k], labels[k + 1], labels[k + 2], labels[k + 3] + ROW / 2);
		}
		if (hover >= 0 && hover !== selected)
			outline(hover, scale, theme.select, 1);
		if (selected > 0 || document.activeElement === canvas)
			outline(selected, scale, theme.select, 2);
	}

	function ask() {
		if (!frameAsked)
			frameAsked = requestAnimationFrame(draw);
	}

	// ---- moving ------------------------------------------------------------------------------------

	function setView(a, b) {
		const all = tree.total[0], span = Math.min(Math.max(b - a, all * 1e-9), all);
		view.a = Math.min(Math.max(a, 0), all - span);
		view.b = view.a + span;
		ask();
	}

	function glideTo(a, b) {
		const from = {a: view.a, b: view.b}, start = performance.now();
		cancelAnimationFrame(animation);
		function step(now) {
			const t = Math.min((now - start) / ZOOM_MS, 1), ease = 1 - Math.pow(1 - t, 3);
			setView(from.a + (a - from.a) * ease, from.b + (b - from.b) * ease);
			if (t < 1)
				animation = requestAnimationFrame(step);
		}
		if (calm.matches)
			setView(a, b);
		else
			step(start);
	}

	function zoom(i) {
		zoomed = i;
		glideTo(tree.x[i], tree.x[i] + tree.total[i]);
		showPath();
	}

	function intoSight(i) {
		const y = rowY(tree.depth[i]);
		if (y < 0)
			scroll.scrollTop += y - ROW;
		else if (y + ROW > height)
			scroll.scrollTop += y + 2 * ROW - height;
	}

	function select(i) {
		selected = i;
		intoSight(i);
		showDetails(i);
		ask();
	}

	const children = function* (i) {
		for (let c = i + 1; c < tree.end[i]; c = tree.end[c])
			yield c;
	};

	function nodeAt(px, py) {
		const depth = Math.floor((icicle ? py + scroll.scrollTop : content - scroll.scrollTop - py) / ROW);
		const value = view.a + px / width * (view.b - view.a);
		let i = 0;
		if (depth < 0 || depth > tree.maxDepth)
			return -1;
		while (tree.depth[i] < depth) {
			let found = -1;
			for (const c of children(i)) {
				if (value < tree.x[c])
					break;
				if (value < tree.x[c] + tree.total[c]) {
					found = c;
					break;
				}
			}
			if (found < 0)
				return -1;
			i = found;
		}
		return i;
	}

	function largestChild(i) {
		let best = -1;
		for (const c of children(i))
			if (tree.total[c] > 0 && (best < 0 || tree.total[c] > tree.total[best]))
				best = c;
		return best;
	}

	// The nearest drawn frame of the same row, to the left or right.
	function neighbour(i, step) {
		const depth = tree.depth[i];
		for (let c = i + step; c > 0 && c < tree.n; c += step)
			if (tree.depth[c] === depth && tree.total[c] > 0)
				return c;
		return -1;
	}

	// ---- words -------------------------------------------------------------------------------------

	function element(tag, text, attributes) {
		const e = document.createElement(tag);
		if (text !== undefined)
			e.textContent = text;
		return Object.assign(e, attributes);
	}

	function facts(i) {
		const p = tree.parent[i], all = tree.total[0], rows = [];
		rows.push(["Total", number(tree.total[i]) + " " + data.unit, percent(tree.total[i] / all)]);
		if (i > 0)
			rows.push([tree === down ? "Of caller" : "Of callee", "", percent(tree.total[i] / (tree.total[p] || 1))]);
		if (tree === down)
			rows.push(["Self", number(tree.self[i]) + " " + data.unit, percent(tree.self[i] / all)]);
		if (data.diff)
			rows.push(["Change", number(tree.baseTotal[i]) + " before", (change(i) >= 0 ? "+" : "") + (change(i) * 100).toFixed(2) + " points"]);
		return rows;
	}

	function showDetails(i) {
		const frame = tree.frame[i], object = data.strings[data.objects[frame]], file = data.strings[data.files[frame]];
		const words = facts(i).map((row) => row[0].toLowerCase() + " " + row.slice(1).filter(Boolean).join(", "));
		if (object)
			words.push(object);
		if (file)
			words.push(file);
		$("details").replaceChildren(element("b", name(frame)), words.join(" \u00b7 "));
		$("copy").hidden = false;
	}

	function showTip(i, x, y) {
		const frame = tree.frame[i], table = element("table");
		if (i < 0) {
			tip.hidden = true;
			return;
		}
		for (const row of facts(i)) {
			const line = element("tr");
			line.append(element("th", row[0]), element("td", row[1]), element("td", row[2]));
			table.append(line);
		}
		tip.replaceChildren(element("b", name(frame)));
		if (data.strings[data.objects[frame]])
			tip.append(element("div", data.strings[data.objects[frame]], {className: "where"}));
		if (data.strings[data.files[frame]])
			tip.append(element("div", data.strings[data.files[frame]], {className: "where"}));
		tip.append(table);
		tip.hidden = false;
		tip.style.left = Math.max(8, Math.min(x + 14, window.innerWidth - tip.offsetWidth - 12)) + "px";
		tip.style.top = (y + 20 + tip.offsetHeight > window.innerHeight ? y - tip.offsetHeight - 12 : y + 20) + "px";
	}

	function showPath() {
		const nodes = [];
		for (let i = zoomed; ; i = tree.parent[i]) {
			nodes.unshift(i);
			if (i === 0)
				break;
		}
		$("path").replaceChildren();
		nodes.forEach((i, k) => {
			if (nodes.length > 9 && k > 1 && k < nodes.length - 6) {
				if (k === 2)
					$("path").append(element("span", "\u203a \u2026 "));
				return;
			}
			if (k > 0)
				$("path").append(element("span", "\u203a"));
			const button = element("button", name(tree.frame[i]), {type: "button", title: name(tree.frame[i])});
			if (i === zoomed)
				button.setAttribute("aria-current", "location");
			button.addEventListener("click", () => { zoom(i); select(i); canvas.focus(); });
			$("path").append(button);
		});
	}

	function showLegend() {
		const items = [];
		if (data.diff) {
			items.push(["hsl(30 95% 60%)", "grew"], ["#e4e4e4", "same"], ["hsl(206 75% 64%)", "shrank"]);
		} else if (color === "kind") {
			KINDS.forEach((kind, k) => {
				if (data.kinds.includes(k))
					items.push(["hsl(" + TINTS[k][0] + " " + TINTS[k][1] + "% " + (TINTS[k][2] + 4) + "%)", kind]);
			});
		}
		if (data.kinds.includes(KIND_HIDDEN))
			items.push([theme.merged, "small frames"]);
		$("legend").replaceChildren(...items.map((item) => {
			const entry = element("span"), patch = element("i");
			patch.style.background = item[0];
			entry.append(patch, item[1]);
			return entry;
		}));
	}

	// ---- search ------------------------------------------------------------------------------------

	function runSearch(pattern) {
		let regex, share = 0;
		match = -1;
		$("search").classList.remove("bad");
		if (!pattern) {
			search = null;
			matches = [];
			$("matched").textContent = "";
			ask();
			return;
		}
		try {
			regex = new RegExp(pattern, /[A-Z]/.test(pattern) ? "" : "i");
		} catch (e) {
			$("search").classList.add("bad");
			regex = new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
		}
		search = data.names.map((id, frame) => regex.test(name(frame)) ? 1 : 0);
		search[tree.frame[0]] = 0;
		matches = [];
		// The share counts outermost matches: what is inside a matching frame is already in it.
		for (let i = 1, covered = 0; i < tree.n; i++) {
			if (!search[tree.frame[i]] || tree.total[i] <= 0)
				continue;
			matches.push(i);
			if (i >= covered) {
				share += tree.total[i];
				covered = tree.end[i];
			}
		}
		$("matched").replaceChildren(element("b", percent(share / tree.total[0])),
			" in " + number(matches.length) + (matches.length === 1 ? " frame" : " frames"));
		ask();
	}

	function nextMatch(step) {
		if (!matches.length)
			return;
		match = match < 0 ? (step > 0 ? 0 : matches.length - 1) : (match + step + matches.length) % matches.length;
		const i = matches[match];
		if (tree.total[i] / (view.b - view.a) * width < 40 || tree.x[i] < view.a || tree.x[i] >= view.b) {
			let around = i;
			while (around > 0 && tree.total[around] < tree.total[i] * 8)
				around = tree.parent[around];
			zoom(around);
		}
		select(i);
	}

	// ---- switches ----------------------------------------------------------------------------------

	function useTree(next) {
		tree = next;
		maxChange = 0;
		for (let i = 1; data.diff && i < tree.n; i++)
			maxChange = Math.max(maxChange, Math.abs(change(i)));
		zoomed = selected = 0;
		hover = -1;
		view = {a: 0, b: tree.total[0]};
		$("bottomup").setAttribute("aria-pressed", String(tree !== down));
		canvas.setAttribute("aria-label", (tree === down ? "Flame graph" : "Bottom-up flame graph") + ", " +
			number(tree.n) + " frames, " + number(tree.total[0]) + " " + data.unit +
			". Arrow keys move, Enter zooms, slash searches.");
		resize();
		scroll.scrollTop = icicle ? 0 : scroll.scrollHeight;
		showPath();
		runSearch($("search").value);
	}

	function toggleBottomUp() {
		if (!up)
			up = trees.bottomUp(down);
		useTree(tree === down ? up : down);
		$("details").textContent = tree === down ? "" : "Bottom-up: the first row are the functions where samples fell, behind them who called them.";
		$("copy").hidden = true;
	}

	function toggleIcicle() {
		icicle = !icicle;
		$("icicle").setAttribute("aria-pressed", String(icicle));
		scroll.scrollTop = icicle ? 0 : scroll.scrollHeight;
		intoSight(selected);
		ask();
	}

	function copyName() {
		const text = name(tree.frame[selected]), done = () => {
			$("copy").textContent = "Copied";
			setTimeout(() => { $("copy").textContent = "Copy name"; }, 1200);
		};
		function byHand() {
			const area = element("textarea", text);
			document.body.append(area);
			area.select();
			document.execCommand("copy");
			area.remove();
			canvas.focus();
			done();
		}
		if (navigator.clipboard)
			navigator.clipboard.writeText(text).then(done, byHand);
		else
			byHand();
	}

	function widen(factor, px) {
		const middle = view.a + px / width * (view.b - view.a);
		cancelAnimationFrame(animation);
		setView(middle - (middle - view.a) * factor, middle + (view.b - middle) * factor);
	}

	function escape() {
		if ($("search").value) {
			$("search").value = "";
			runSearch("");
		} else {
			zoom(tree.parent[zoomed]);
		}
	}

	function move(key) {
		let to = -1;
		if (key === "ArrowLeft" || key === "ArrowRight")
			to = neighbour(selected, key === "ArrowLeft" ? -1 : 1);
		else if ((key === "ArrowUp") === icicle)
			to = selected > 0 ? tree.parent[selected] : -1;
		else
			to = largestChild(selected);
		if (to >= 0)
			select(to);
	}

	const actions = {
		Enter: () => zoom(selected), Home: () => { zoom(0); select(0); }, Escape: escape,
		"/": () => { $("search").focus(); $("search").select(); }, n: () => nextMatch(1), N: () => nextMatch(-1),
		b: toggleBottomUp, i: toggleIcicle, c: copyName, "?": () => $("keys").showModal(),
		"+": () => widen(0.7, width / 2), "-": () => widen(1 / 0.7, width / 2)
	};

	document.addEventListener("keydown", (event) => {
		const typing = event.target === $("search"), inControl = event.target.closest("button, select, dialog");
		if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open)
			return;
		if (typing) {
			if (event.key === "Enter" || event.key === "Escape") {
				if (event.key === "Escape")
					escape();
				else
					nextMatch(1);
				canvas.focus();
				event.preventDefault();
			}
			return;
		}
		if (inControl && (event.key === "Enter" || event.key.startsWith("Arrow")))
			return;
		if (event.key.startsWith("Arrow"))
			move(event.key);
		else if (Object.hasOwn(actions, event.key))
			actions[event.key]();
		else
			return;
		event.preventDefault();
	});

	// ---- pointer -----------------------------------------------------------------------------------

	let drag = null;
	const place = (event) => {
		const box = canvas.getBoundingClientRect();
		return [event.clientX - box.left, event.clientY - box.top];
	};
	canvas.addEventListener("pointerdown", (event) => {
		drag = {x: event.clientX, a: view.a, b: view.b, moved: false};
	});
	window.addEventListener("pointermove", (event) => {
		if (drag && (drag.moved || Math.abs(event.clientX - drag.x) > 4)) {
			const shift = (event.clientX - drag.x) / width * (drag.b - drag.a);
			drag.moved = true;
			tip.hidden = true;
			cancelAnimationFrame(animation);
			setView(drag.a - shift, drag.b - shift);
			return;
		}
		const i = event.target === canvas ? nodeAt(...place(event)) : -1;
		if (i !== hover) {
			hover = i;
			canvas.style.cursor = i >= 0 ? "pointer" : "default";
			ask();
		}
		showTip(i, event.clientX, event.clientY);
	});
	window.addEventListener("pointerup", (event) => {
		const clicked = drag && !drag.moved && event.target === canvas ? nodeAt(...place(event)) : -1;
		drag = null;
		if (clicked >= 0) {
			select(clicked);
			zoom(clicked);
		}
	});
	canvas.addEventListener("pointerleave", () => { hover = -1; tip.hidden = true; ask(); });
	canvas.addEventListener("wheel", (event) => {
		const sideways = event.shiftKey ? event.deltaY : event.deltaX;
		tip.hidden = true;
		if (event.ctrlKey) {
			widen(Math.pow(1.002, event.deltaY), place(event)[0]);
		} else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
			const shift = sideways / width * (view.b - view.a);
			setView(view.a + shift, view.b + shift);
		} else {
			return;
		}
		event.preventDefault();
	}, {passive: false});

	// ---- start -------------------------------------------------------------------------------------

	$("search").addEventListener("input", () => runSearch($("search").value));
	$("bottomup").addEventListener("click", toggleBottomUp);
	$("icicle").addEventListener("click", toggleIcicle);
	$("copy").addEventListener("click", copyName);
	$("help").addEventListener("click", () => $("keys").showModal());
	$("color").addEventListener("change", () => { color = $("color").value; colors.length = 0; showLegend(); ask(); });
	canvas.addEventListener("focus", () => { if (!$("details").textContent) showDetails(selected); ask(); });
	canvas.addEventListener("blur", ask);
	scroll.addEventListener("scroll", ask);
	window.addEventListener("resize", resize);
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); showLegend(); ask(); });

	readTheme();
	$("color").value = color;
	$("color").parentElement.hidden = data.diff;
	$("icicle").setAttribute("aria-pressed", String(icicle));
	if (data.hidden)
		$("info").append(" \u00b7 " + number(data.hidden) + " small frames merged");
	showLegend();
	useTree(down);
	cancelAnimationFrame(frameAsked);
	draw();
	performance.mark("drawn");
})();
