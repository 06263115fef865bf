# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the reports of the benches (bench-report, bench-network-report) share:
figures of raw.json, text tables and pictures.
"""

import html
import math
import statistics


def digits(value):
    """Three significant digits, or more before the point."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def figures(raw, name, driver, metric):
    """None: not measured on purpose. Otherwise median, least, most, or the
    reason of failure.
    """
    failed = raw["failed"].get(name, {}).get(driver)
    if failed:
        return {"failed": failed}
    values = raw["values"].get(name, {}).get(driver, {}).get(metric)
    if not values:
        return None
    if len(values) != raw["rounds"]:
        return {"failed": f"measured {len(values)} times, not {raw['rounds']}"}
    return {"median": statistics.median(values), "least": min(values),
            "most": max(values), "values": values}


def gaps(raw, names):
    """What is missing, whether or not it was reported when it happened."""
    found = [f"{name}, {names[driver]}: {reason}"
             for name, reasons in raw["failed"].items()
             for driver, reason in reasons.items()]
    for name, expected in raw["rows"].items():
        for driver in expected:
            if driver in raw["absent"] or driver in raw["failed"].get(name, {}):
                continue
            metrics = raw["values"].get(name, {}).get(driver, {})
            if not metrics or any(len(values) != raw["rounds"]
                                  for values in metrics.values()):
                found.append(
                    f"{name}, {names[driver]}: not measured in every round")
    return found


# --- tables

def show(found):
    if found is None:
        return "-"
    if "failed" in found:
        return "failed"
    return (f"{digits(found['median'])} "
            f"({digits(found['least'])}..{digits(found['most'])})")


def head_lines(raw):
    machine = raw["machine"]
    return [
        f"kernel       {machine['kernel']}",
        f"machine      {machine['cpus']} CPUs, {machine['accelerator']}, {machine['cpu']}, clock {machine['clock']}"
        + (f", cards joined by {machine['wires']}" if machine.get("wires")
           else ""),
        f"host         {machine['host']}",
        f"versions     arx {machine['commit']}, "
        + ", ".join(f"{k} {v}" for k, v in machine["packages"].items()),
        f"run          {raw['rounds']} rounds, {raw['seconds']:.0f} s; median (least..most); -: not measured, failed: no figure",
    ]


def layout(head, body):
    """The lines of a table. Those of `body` are tuples like `head`, or titles."""
    table = [head] + [line for line in body if isinstance(line, tuple)]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]

    def one(line):
        return "  ".join([line[0].ljust(widths[0]), line[1].ljust(widths[1])] +
                         [line[i].rjust(widths[i])
                          for i in range(2, len(head) - 1)] +
                         [line[-1]]).rstrip()

    lines = [one(head), "-" * len(one(head))]
    for line in body:
        lines += [one(line)] if isinstance(line, tuple) else ["", line]
    return lines


# --- pictures

def text(x, y, content, anchor="start", size=12, weight="normal", fill="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{fill}">{html.escape(content)}</text>')


def svg(path, width, height, parts):
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="sans-serif">\n<rect width="100%" height="100%" fill="#fff"/>\n')
        file.write("\n".join(parts) + "\n</svg>\n")


def caption(raw):
    machine = raw["machine"]
    return (f"Linux {machine['kernel'].split()[0]}, {machine['cpus']} CPUs, {machine['accelerator']}; median of "
            f"{raw['rounds']} rounds, line: least to most")


class Chart:
    """Lines over an axis with labels at some places from 0 to 1; the axis of
    the figures is logarithmic.
    """

    WIDTH, HEIGHT = 760, 454	# with its title
    LEFT, UPPER, ACROSS, DOWN = 70, 70, 600, 330

    def __init__(self, labels, x_name, y_name):
        self.labels, self.x_name, self.y_name = labels, x_name, y_name
        self.bottom, self.top = 0, 1

    def at(self, x, y):
        return (self.LEFT + self.ACROSS * x,
                self.UPPER + self.DOWN
                * (self.top - math.log10(max(y, 10 ** self.bottom)))
                / (self.top - self.bottom))

    def draw(self, lines, names, colours):
        """lines: {driver: [(place, cell)]}"""
        values = [found[key] for line in lines.values() for _, found in line
                  for key in ("least", "most")]
        self.bottom = math.floor(math.log10(min(values)))
        self.top = max(math.ceil(math.log10(max(values))), self.bottom + 1)
        parts, ends = self.axes(), []
        for driver, line in lines.items():
            parts += self.line(line, colours[driver])
            ends.append((self.at(line[-1][0], line[-1][1]["median"])[1],
                         driver))
        last = -99
        for y, driver in sorted(ends):
            last = max(y, last + 15)	# labels must not overlap
            parts.append(text(self.LEFT + self.ACROSS + 10, last + 4,
                              names[driver], weight="bold",
                              fill=colours[driver]))
        return parts

    def axes(self):
        parts = []
        for power in range(self.bottom, self.top + 1):
            y = self.at(0, 10.0 ** power)[1]
            parts += [
                f'<path d="M{self.LEFT} {y:.1f}h{self.ACROSS}" stroke="#ddd"/>',
                text(self.LEFT - 6, y + 4, f"{10.0 ** power:g}", "end", 11)]
        for x, label in self.labels:
            parts.append(text(self.at(x, 1)[0], self.UPPER + self.DOWN + 18,
                              label, "middle", 11))
        return parts + [text(self.LEFT + self.ACROSS / 2,
                             self.UPPER + self.DOWN + 38, self.x_name,
                             "middle"),
                        text(self.LEFT - 50, self.UPPER - 6, self.y_name,
                             size=11)]

    def line(self, points, colour):
        path = "M" + "L".join(
            "{:.1f} {:.1f}".format(*self.at(x, found["median"]))
            for x, found in points)
        parts = [f'<path d="{path}" fill="none" stroke="{colour}" '
                 'stroke-width="2.5"/>']
        for x, found in points:
            (here, y), (_, least), (_, most) = (
                self.at(x, found[key]) for key in ("median", "least", "most"))
            parts.append(
                f'<path d="M{here:.1f} {least:.1f}V{most:.1f}" stroke="{colour}"/>'
                f'<circle cx="{here:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        return parts
