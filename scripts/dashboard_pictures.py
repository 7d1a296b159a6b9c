#!/usr/bin/env python3
"""Draws the dashboards from a Prometheus server, with the queries that Grafana would send: the pictures in docs/ are made
so, since they need no Grafana. It looks like Grafana only as far as it shows the same numbers.

    scripts/dashboard_pictures.py URL FOLDER [SECONDS]     of the last SECONDS (300)

Needs matplotlib. One picture a dashboard: FOLDER/<name>.png.
"""
import json
import pathlib
import re
import sys
import time
import urllib.parse
import urllib.request

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[1]
DASHBOARDS = sorted((ROOT / "helm/lockstep/dashboards").glob("*.json"))
ROW = 0.42  # inches of a row of the grid
SCALES = {"percentunit": (100, "%"), "bytes": (2**-20, "MiB"), "Bps": (1e-6, "MB/s"), "hertz": (1e-9, "GHz"),
          "s": (1, "s"), "watt": (1, "W"), "joule": (1, "J"), "celsius": (1, "°C"), "none": (1, "")}


def series_of(url, expression, seconds):
    """(labels, times before now, values) of each series."""
    expression = expression.replace("$__rate_interval", "20s").replace("$__range", f"{seconds}s")
    expression = re.sub(r"\$(job|run|instance|rank)\b", ".+", expression)
    now = time.time()
    query = urllib.parse.urlencode({"query": expression, "start": now - seconds, "end": now, "step": max(1, seconds // 300)})
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{query}", timeout=30) as answer:
        for one in json.load(answer)["data"]["result"]:
            yield one["metric"], [t - now for t, _ in one["values"]], [float(v) for _, v in one["values"]]


def legend(form, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), form)


def draw_lines(axes, panel, found, factor):
    custom = panel["fieldConfig"]["defaults"]["custom"]
    if custom["stacking"]["mode"] == "normal" and found:
        times = sorted({t for _, own, _ in found for t in own})
        rows = [[dict(zip(own, values)).get(t, 0) * factor for t in times] for _, own, values in found]
        axes.stackplot(times, rows, labels=[name for name, _, _ in found], alpha=0.7)
    else:
        for name, times, values in found:
            axes.plot(times, [value * factor for value in values], label=name, linewidth=1)
    if 0 < len(found) <= 8:
        axes.legend(fontsize=5, loc="upper left", frameon=False)


def draw_heatmap(axes, found, factor):
    found.sort()
    times = sorted({t for _, own, _ in found for t in own})
    rows = [[dict(zip(own, values)).get(t, float("nan")) * factor for t in times] for _, own, values in found]
    if rows:
        mesh = axes.pcolormesh(times, range(len(rows)), rows, cmap="viridis", shading="nearest")
        axes.figure.colorbar(mesh, ax=axes).ax.tick_params(labelsize=5)
        axes.set_yticks(range(len(rows)), [name for name, _, _ in found])


def draw_states(axes, found):
    names = sorted({name for name, _, _ in found})
    for name, times, values in found:
        axes.scatter(times, [names.index(name)] * len(times), c=values, s=3, marker="s", cmap="tab10")
    axes.set_yticks(range(len(names)), names)


def draw_panel(axes, panel, url, seconds):
    factor, unit = SCALES[panel["fieldConfig"]["defaults"]["unit"]]
    found = [(legend(target["legendFormat"], labels), times, values) for target in panel["targets"]
             for labels, times, values in series_of(url, target["expr"], seconds)]
    axes.set_title(panel["title"] + (f" [{unit}]" if unit else ""), fontsize=7, loc="left")
    axes.tick_params(labelsize=5)
    if panel["type"] == "stat":
        axes.axis("off")
        several = len(found) > 1
        text = "\n".join(f"{values[-1] * factor:.4g}" + (f" {name}" if several else "") for name, _, values in found)
        axes.text(0.5, 0.4, text, ha="center", va="center", fontsize=8 if several else 14)
    elif panel["type"] == "heatmap":
        draw_heatmap(axes, found, factor)
    elif panel["type"] == "state-timeline":
        draw_states(axes, found)
    else:
        draw_lines(axes, panel, found, factor)


def draw(board, url, seconds, path):
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    figure = pyplot.figure(figsize=(12, rows * ROW), dpi=110, layout="constrained")
    grid = figure.add_gridspec(rows, 24)
    for panel in board["panels"]:
        place = panel["gridPos"]
        axes = figure.add_subplot(grid[place["y"]:place["y"] + place["h"], place["x"]:place["x"] + place["w"]])
        draw_panel(axes, panel, url, seconds)
    figure.suptitle(board["title"], fontsize=9)
    figure.savefig(path)
    pyplot.close(figure)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    url, folder, seconds = sys.argv[1].rstrip("/"), pathlib.Path(sys.argv[2]), int((sys.argv + ["300"])[3])
    folder.mkdir(parents=True, exist_ok=True)
    for file in DASHBOARDS:
        draw(json.loads(file.read_text()), url, seconds, folder / f"{file.stem}.png")


if __name__ == "__main__":
    main()
