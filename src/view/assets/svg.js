// Zoom, search and keyboard of the static picture. Everything is read back from the frames themselves:
// data-x and data-w (shares of the whole) and data-d (depth).
(function () {
	"use strict";
	const svg = document.documentElement;
	const margin = Number(svg.dataset.margin), charWidth = Number(svg.dataset.char);
	const inner = svg.viewBox.baseVal.width - 2 * margin;
	const details = document.getElementById("details"), matched = document.getElementById("matched");
	const frames = Array.from(document.querySelectorAll(".f"), function (g) {
		return {
			g: g, rect: g.querySelector("rect"), text: g.querySelector("text"),
			title: g.querySelector("title").textContent, x: Number(g.dataset.x), w: Number(g.dataset.w),
			depth: Number(g.dataset.d)
		};
	});
	const hidden = Array.from(document.querySelectorAll(".h"));
	let zoomed = frames[0], hits = [], hit = -1;

	frames.forEach(function (f, i) {
		f.name = f.title.split("\n")[0];
		f.points = Array.from(f.name);
		f.g.setAttribute("tabindex", i === 0 ? "0" : "-1");
		f.g.setAttribute("role", "img");
		f.g.setAttribute("aria-label", f.title.replace(/\n/g, ", "));
		f.g.addEventListener("click", function () { zoom(f); });
		f.g.addEventListener("mouseenter", function () { tell(f); });
		f.g.addEventListener("focus", function () { tell(f); });
	});

	function tell(f) {
		details.textContent = f.title.replace(/\n/g, "  \u00b7  ");
	}

	function label(f, x, pixels) {
		const room = Math.floor((pixels - 8) / charWidth);
		if (room < 3) {
			if (f.text)
				f.text.textContent = "";
			return;
		}
		if (!f.text) {
			f.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
			f.text.setAttribute("y", Number(f.rect.getAttribute("y")) + 12);
			f.g.appendChild(f.text);
		}
		f.text.setAttribute("x", x + 4);
		f.text.textContent = f.points.length <= room ? f.name : f.points.slice(0, room - 1).join("") + "\u2026";
	}

	function inside(f, root) {
		return f.x < root.x + root.w - 1e-9 && f.x + f.w > root.x + 1e-9;
	}

	function zoom(root) {
		zoomed = root;
		frames.forEach(function (f) {
			const show = inside(f, root);
			const left = Math.max(f.x, root.x), right = Math.min(f.x + f.w, root.x + root.w);
			const x = margin + (left - root.x) / root.w * inner, pixels = (right - left) / root.w * inner;
			f.g.style.display = show ? "" : "none";
			f.g.classList.toggle("p", f.depth < root.depth);
			if (!show)
				return;
			f.rect.setAttribute("x", x);
			f.rect.setAttribute("width", Math.max(pixels - (pixels > 2 ? 0.5 : 0), 0.1));
			label(f, x, pixels);
		});
		hidden.forEach(function (g) { g.style.display = root === frames[0] ? "" : "none"; });
		svg.classList.toggle("zoomed", root !== frames[0]);
	}

	function search(pattern) {
		let regex;
		if (!pattern) {
			clear();
			return;
		}
		try {
			regex = new RegExp(pattern, /[A-Z]/.test(pattern) ? "" : "i");
		} catch (e) {
			regex = new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
		}
		hits = frames.filter(function (f) { return f.depth > 0 && regex.test(f.name); });
		hit = -1;
		svg.classList.add("searching");
		frames.forEach(function (f) { f.g.classList.remove("m"); });
		hits.forEach(function (f) { f.g.classList.add("m"); });
		// Outermost matches only: a frame inside a matching one is already counted.
		let share = 0, end = -1;
		hits.slice().sort(function (a, b) { return a.x - b.x || a.depth - b.depth; }).forEach(function (f) {
			if (f.x < end - 1e-9)
				return;
			share += f.w;
			end = f.x + f.w;
		});
		matched.textContent = hits.length + " frames match " + pattern + ": " + (share * 100).toFixed(2) + "%";
		document.getElementById("search").textContent = "Clear search";
	}

	function clear() {
		hits = [];
		svg.classList.remove("searching");
		frames.forEach(function (f) { f.g.classList.remove("m"); });
		matched.textContent = " ";
		document.getElementById("search").textContent = "Search";
	}

	function ask() {
		if (hits.length)
			clear();
		else
			search(window.prompt("Search for (regular expression):", "") || "");
	}

	function current() {
		return frames.find(function (f) { return f.g === document.activeElement; }) || zoomed;
	}

	function next(f, key) {
		const up = Number(frames[0].rect.getAttribute("y")) > 100;
		const deeper = key === (up ? "ArrowUp" : "ArrowDown");
		const at = frames.indexOf(f);
		if (key === "ArrowLeft" || key === "ArrowRight") {
			const row = frames.filter(function (o) { return o.depth === f.depth && inside(o, zoomed); });
			return row[row.indexOf(f) + (key === "ArrowRight" ? 1 : -1)];
		}
		if (deeper)
			return frames[at + 1] && frames[at + 1].depth === f.depth + 1 ? frames[at + 1] : null;
		return frames.slice(0, at).reverse().find(function (o) { return o.depth === f.depth - 1; });
	}

	function key(event) {
		const k = event.key;
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (k.startsWith("Arrow")) {
			const f = next(current(), k);
			if (f)
				f.g.focus();
		} else if (k === "Enter" || k === " ") {
			if (event.target.id === "search")
				ask();
			else if (event.target.id === "reset")
				zoom(frames[0]);
			else
				zoom(current());
		} else if (k === "Escape") {
			if (hits.length)
				clear();
			else
				zoom(frames[0]);
		} else if (k === "Home") {
			zoom(frames[0]);
		} else if (k === "/") {
			search(window.prompt("Search for (regular expression):", "") || "");
		} else if ((k === "n" || k === "N") && hits.length) {
			hit = (hit + (k === "n" ? 1 : hits.length - 1) + (hit < 0 && k === "N" ? 1 : 0)) % hits.length;
			zoom(frames[0]);
			hits[hit].g.focus();
		} else {
			return;
		}
		event.preventDefault();
	}

	svg.classList.add("js");
	document.getElementById("reset").addEventListener("click", function () { zoom(frames[0]); });
	document.getElementById("search").addEventListener("click", ask);
	document.addEventListener("keydown", key);
})();
