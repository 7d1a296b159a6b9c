#!/usr/bin/env python3
"""Draws the dashboards from a Prometheus server, with the queries that Grafana would send: makes the pictures in docs/
without Grafana. They show the same numbers, but do not look like Grafana otherwise.

    scripts/dashboard_pictures.py URL FOLDER [SECONDS [END]]     of the SECONDS (300) before END (a Unix time; now)

Needs matplotlib. One picture for each dashboard: FOLDER/<name>.png.
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
DASHBOARDS = sorted((ROOT / "helm/lockstep-monitoring/dashboards").glob("*.json"))
WIDTH, ROW = 12, 0.42  # inches: width of the picture, height of a grid row
LEFT, RIGHT, TOP, BOTTOM = 0.8, 0.12, 0.3, 0.28  # inches around the drawing of a panel
MOST_IN_LEGEND = 8
SCALES = {"percentunit": (100, "%"), "bytes": (2**-20, "MiB"), "Bps": (1e-6, "MB/s"), "hertz": (1e-9, "GHz"),
          "s": (1, "s"), "watt": (1, "W"), "joule": (1, "J"), "celsius": (1, "°C"), "none": (1, ""), "short": (1, "")}


def series_of(url, expression, seconds, end):
    """(labels, times since the beginning, values) of each series."""
    expression = expression.replace("$__rate_interval", "20s").replace("$__range", f"{seconds}s").replace("$top", "20")
    expression = re.sub(r"\$(cluster|namespace)\b", ".*", expression)
    expression = re.sub(r"\$(job|run|instance|rank)\b", ".+", expression)
    start = end - seconds
    query = urllib.parse.urlencode({"query": expression, "start": start, "end": end, "step": max(1, seconds // 300)})
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{query}", timeout=30) as answer:
        for one in json.load(answer)["data"]["result"]:
            yield one["metric"], [t - start for t, _ in one["values"]], [float(v) for _, v in one["values"]]


def legend(form, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), form)


def scale_of(panel, name):
    """(factor, unit) of a series: the panel's, unless overridden."""
    field = panel["fieldConfig"]
    unit = field["defaults"]["unit"]
    for override in field.get("overrides", []):
        if override["matcher"] == {"id": "byName", "options": name}:
            unit = next((one["value"] for one in override["properties"] if one["id"] == "unit"), unit)
    return SCALES[unit]


def draw_lines(axes, panel, found, factor):
    custom = panel["fieldConfig"]["defaults"]["custom"]
    if custom["stacking"]["mode"] == "normal" and found:
        times = sorted({t for _, own, _ in found for t in own})
        rows = [[dict(zip(own, values)).get(t, 0) * factor for t in times] for _, own, values in found]
        axes.stackplot(times, rows, labels=[name for name, _, _ in found], alpha=0.7)
    else:
        for name, times, values in found:
            axes.plot(times, [value * factor for value in values], label=name, linewidth=1)
    if all(value == 0 for _, _, values in found for value in values):
        axes.set_ylim(0, 1)
    if 0 < len(found) <= MOST_IN_LEGEND:
        axes.legend(fontsize=6, loc="upper left", framealpha=0.7, borderpad=0.2, labelspacing=0.2, edgecolor="none")


def draw_heatmap(axes, found, factor):
    found.sort()
    times = sorted({t for _, own, _ in found for t in own})
    rows = [[dict(zip(own, values)).get(t, float("nan")) * factor for t in times] for _, own, values in found]
    if rows:
        mesh = axes.pcolormesh(times, range(len(rows)), rows, cmap="viridis", shading="nearest")
        box = axes.get_position()
        axes.set_position((box.x0, box.y0, 0.95 * box.width, box.height))
        axes.figure.colorbar(mesh, cax=axes.inset_axes((1.01, 0, 0.01, 1))).ax.tick_params(labelsize=6)
        axes.set_yticks(range(len(rows)), [name for name, _, _ in found])


def draw_states(axes, found):
    """A row for each series, a color for each value; the smallest value of several is none: waiting for no rank."""
    names = sorted({name for name, _, _ in found})
    states = sorted({value for _, _, values in found for value in values})
    states = states[1:] or states
    for name, times, values in found:
        for state in states:
            at = [t for t, value in zip(times, values) if value == state]
            axes.scatter(at, [names.index(name)] * len(at), s=10, marker="|", color=f"C{states.index(state)}")
    for state in states if len(states) > 1 else []:
        axes.scatter([], [], marker="s", color=f"C{states.index(state)}", label=f"{state:g}")
    if len(states) > 1:
        axes.legend(fontsize=6, loc="upper left", framealpha=0.7, ncols=len(states), borderpad=0.2, edgecolor="none")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.5, len(names))


def draw_numbers(axes, panel, found):
    lines = []
    for name, _, values in found:
        factor, unit = scale_of(panel, name)
        lines.append(f"{values[-1] * factor:,.4g} {unit}" + (f" {name}" if len(found) > 1 else ""))
    axes.axis("off")
    axes.text(0.5, 0.45, "\n".join(lines), ha="center", va="center", fontsize=9 if len(found) > 1 else 15)


def draw_table(axes, found):
    """A row for each series, as in its legend."""
    axes.axis("off")
    axes.text(0, 1, "\n".join(sorted(name for name, _, _ in found)), va="top", fontsize=7)


def draw_panel(axes, panel, url, seconds, end):
    factor, unit = SCALES[panel["fieldConfig"]["defaults"]["unit"]]
    found = [(legend(target["legendFormat"], labels), times, values) for target in panel["targets"]
             for labels, times, values in series_of(url, target["expr"], seconds, end)]
    axes.set_title(panel["title"] + (f" [{unit}]" if unit else ""), fontsize=8, loc="left")
    axes.tick_params(labelsize=6)
    if panel["type"] == "stat":
        draw_numbers(axes, panel, found)
    elif panel["type"] == "heatmap":
        draw_heatmap(axes, found, factor)
    elif panel["type"] == "state-timeline":
        draw_states(axes, found)
    elif panel["type"] == "table":
        draw_table(axes, found)
    else:
        draw_lines(axes, panel, found, factor)


def draw(board, url, seconds, end, path):
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    height = (rows + 1) * ROW  # one row for the title
    figure = pyplot.figure(figsize=(WIDTH, height), dpi=90)
    for panel in board["panels"]:
        place = panel["gridPos"]
        x, w = place["x"] / 24 * WIDTH + LEFT, place["w"] / 24 * WIDTH - LEFT - RIGHT
        y, h = (rows - place["y"] - place["h"]) * ROW + BOTTOM, place["h"] * ROW - TOP - BOTTOM
        draw_panel(figure.add_axes((x / WIDTH, y / height, w / WIDTH, h / height)), panel, url, seconds, end)
    figure.text(0.01, 1 - ROW / 2 / height, f"{board['title']}: {seconds} s", fontsize=10, va="center")
    figure.savefig(path)
    pyplot.close(figure)


def main():
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    url, folder, seconds = sys.argv[1].rstrip("/"), pathlib.Path(sys.argv[2]), int((sys.argv + ["300"])[3])
    end = float(sys.argv[4]) if len(sys.argv) > 4 else time.time()
    folder.mkdir(parents=True, exist_ok=True)
    for file in DASHBOARDS:
        draw(json.loads(file.read_text()), url, seconds, end, folder / f"{file.stem}.png")


if __name__ == "__main__":
    main()
