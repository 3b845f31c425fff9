// The trees of the flame graph page: the top-down tree as it comes in preorder in the page's data, and the
// bottom-up tree made from it. A node's descendants are the nodes up to end[node].
"use strict";
function flameTrees(data, name) {
	const PRUNE = 0.0002; // of all; smaller callers are merged into what they call

	function emptyTree(n) {
		return {
			n: n, parent: new Int32Array(n), frame: new Int32Array(n), depth: new Int32Array(n),
			end: new Int32Array(n), self: new Float64Array(n), total: new Float64Array(n),
			base: new Float64Array(n), baseTotal: new Float64Array(n), x: new Float64Array(n), maxDepth: 0
		};
	}

	// Totals, subtree ends and positions from parents, selves and the preorder.
	function finish(tree) {
		const last = new Float64Array(tree.n);
		for (let i = tree.n - 1; i >= 0; i--) {
			tree.total[i] += tree.self[i];
			tree.baseTotal[i] += tree.base[i];
			if (tree.end[i] === 0)
				tree.end[i] = i + 1;
			if (i > 0) {
				const p = tree.parent[i];
				tree.total[p] += tree.total[i];
				tree.baseTotal[p] += tree.baseTotal[i];
				if (tree.end[p] < tree.end[i])
					tree.end[p] = tree.end[i];
			}
			if (tree.depth[i] > tree.maxDepth)
				tree.maxDepth = tree.depth[i];
		}
		for (let i = 1; i < tree.n; i++) {
			const p = tree.parent[i];
			tree.x[i] = tree.x[p] + last[p];
			last[p] += tree.total[i];
		}
		return tree;
	}

	function topDown() {
		const tree = emptyTree(data.up.length);
		let at = -1;
		for (let i = 0; i < tree.n; i++) {
			for (let up = data.up[i]; i > 0 && up > 0; up--)
				at = tree.parent[at];
			tree.parent[i] = i > 0 ? at : 0;
			tree.depth[i] = i > 0 ? tree.depth[at] + 1 : 0;
			tree.frame[i] = data.frame[i];
			tree.self[i] = data.self[i];
			if (data.base)
				tree.base[i] = data.base[i];
			at = i;
		}
		return finish(tree);
	}

	// The bottom-up tree: leaves first, callers behind. What is below PRUNE of all is merged, else the
	// number of nodes would be that of all (leaf, caller) pairs.
	function bottomUp(tree) {
		const nodes = [], least = tree.total[0] * PRUNE;
		const ranks = Array.from(data.names.keys()).sort((a, b) => name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a - b);
		const rank = new Int32Array(ranks.length);
		ranks.forEach((frame, i) => { rank[frame] = i; });

		function add(parent, frame, depth, items) {
			const at = nodes.length, groups = new Map();
			const node = {parent: parent, frame: frame, depth: depth, self: 0, base: 0};
			nodes.push(node);
			for (const item of items) {
				const caller = depth === 0 ? item.at : tree.parent[item.at];
				if (depth > 0 && (caller === 0 || depth > 400)) {
					node.self += item.weight;
					node.base += item.base;
					continue;
				}
				let group = groups.get(tree.frame[caller]);
				if (!group)
					groups.set(tree.frame[caller], group = {weight: 0, base: 0, items: []});
				group.weight += item.weight;
				group.base += item.base;
				group.items.push({at: caller, weight: item.weight, base: item.base});
			}
			for (const key of Array.from(groups.keys()).sort((a, b) => rank[a] - rank[b])) {
				const group = groups.get(key);
				if (group.weight < least && group.base < least) {
					node.self += group.weight;
					node.base += group.base;
				} else {
					add(at, key, depth + 1, group.items);
				}
			}
		}

		const leaves = [];
		for (let i = 0; i < tree.n; i++)
			if (tree.self[i] > 0 || tree.base[i] > 0)
				leaves.push({at: i, weight: tree.self[i], base: tree.base[i]});
		add(0, tree.frame[0], 0, leaves);
		const out = emptyTree(nodes.length);
		nodes.forEach((node, i) => {
			out.parent[i] = node.parent;
			out.frame[i] = node.frame;
			out.depth[i] = node.depth;
			out.self[i] = node.self;
			out.base[i] = node.base;
		});
		return finish(out);
	}

	return {topDown: topDown, bottomUp: bottomUp};
}
