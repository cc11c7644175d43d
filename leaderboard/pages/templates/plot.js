// Draws the figure that the page holds as JSON, in the colours of the site's style sheet.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const held = document.getElementById("figure");
  if (!held || !window.Plotly) return;
  const figure = JSON.parse(held.textContent);
  if (!figure.data) return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid"];
  const patterns = ["", "/", ".", "x", "-", "\\", "+"];
  const symbols = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x"];
  const draw = () => {
    const said = getComputedStyle(document.documentElement);
    const colour = (name) => said.getPropertyValue(name).trim();
    const data = figure.data.map((trace, at) => {
      const own = colour(`--s${(at % 7) + 1}`);
      return { ...trace, marker: { color: own, symbol: symbols[at % 7], size: 8 }, line: { color: own, dash: dashes[at % 7] } };
    });
    if (figure.data[0].type === "bar") data.forEach((trace, at) => { delete trace.line; trace.marker = { color: trace.marker.color, pattern: { shape: patterns[at % 7] } }; });
    const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--edge") };
    const layout = {
      ...figure.layout, paper_bgcolor: colour("--back"), plot_bgcolor: colour("--back"), font: { color: colour("--ink"), size: 14 },
      xaxis: { ...axis, ...figure.layout.xaxis }, yaxis: { ...axis, ...figure.layout.yaxis },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, margin: { t: 40, r: 20 },
    };
    window.Plotly.react("plot", data, layout, { responsive: true, displaylogo: false });
  };
  draw();
  dark.addEventListener("change", draw);
});
