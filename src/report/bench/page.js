(function () {
  "use strict";
  var runs = [];
  document.querySelectorAll("script[type='application/json']").forEach(function (element) {
    try { runs.push({ name: element.dataset.name || "", run: JSON.parse(element.textContent), raw: element.textContent }); }
    catch (error) { /* the page shows all the same */ }
  });
  runs.forEach(function (one) {
    one.samples = (one.run.samples || []).slice().sort(function (a, b) { return a.t_s - b.t_s; });
  });
  var chart = document.querySelector("svg.chart");
  var readout = document.getElementById("readout");
  function number(value) {
    return Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
  }
  function bytes(value) {
    var units = ["B", "kB", "MB", "GB", "TB", "PB"], i = 0;
    while (value >= 999.5 && i + 1 < units.length) { value /= 1000; i += 1; }
    return (i === 0 ? value.toFixed(0) : number(value)) + " " + units[i];
  }
  // The sample in which t lies: the first one that ends at or after it.
  function find(samples, t) {
    var low = 0, high = samples.length - 1;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (samples[middle].t_s < t) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }
  function temperature(samples, index) {
    for (var i = index; i >= 0 && i > index - 600; i -= 1) {
      if (typeof samples[i].temp_c === "number") {
        var age = samples[index].t_s - samples[i].t_s;
        return number(samples[i].temp_c) + " °C" + (age > 0 ? " (" + number(age) + " s ago)" : "");
      }
    }
    return "no temperature";
  }
  function describe(t) {
    return runs.filter(function (one) { return one.samples.length > 0; }).map(function (one) {
      var index = find(one.samples, t), s = one.samples[index];
      return (one.name ? one.name + ": " : "") + number(s.t_s) + " s, " + s.op + " " + number(s.mb_s) + " MB/s, " +
        temperature(one.samples, index) + ", " + bytes(s.cumulative_bytes) + " so far";
    }).join("  |  ");
  }
  if (chart && readout) {
    var left = Number(chart.dataset.left), right = Number(chart.dataset.right), end = Number(chart.dataset.seconds);
    var line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("y1", chart.dataset.top);
    line.setAttribute("y2", chart.dataset.bottom);
    line.setAttribute("stroke", "currentColor");
    line.setAttribute("stroke-width", "1");
    line.setAttribute("visibility", "hidden");
    line.setAttribute("pointer-events", "none");
    chart.appendChild(line);
    chart.setAttribute("tabindex", "0");
    var now = 0;
    var show = function (t) {
      now = Math.min(Math.max(t, 0), end);
      var x = left + now / end * (right - left);
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.setAttribute("visibility", "visible");
      readout.textContent = describe(now);
    };
    chart.addEventListener("pointermove", function (event) {
      var box = chart.getBoundingClientRect();
      if (box.width <= 0) { return; }
      var x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
      if (x >= left - 8 && x <= right + 8) { show((x - left) / (right - left) * end); }
    });
    chart.addEventListener("keydown", function (event) {
      var step = end / 200;
      if (event.key === "ArrowRight") { show(now + step); event.preventDefault(); }
      if (event.key === "ArrowLeft") { show(now - step); event.preventDefault(); }
    });
  }
  document.querySelectorAll("button[data-save]").forEach(function (button) {
    button.addEventListener("click", function () {
      var one = runs[Number(button.dataset.save)];
      if (!one) { return; }
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([one.raw], { type: "application/json" }));
      link.download = "run.json";
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
  });
}());
