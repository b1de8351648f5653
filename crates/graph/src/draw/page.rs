//! Renders a drawing as a self-contained web page.

use crate::draw::drawing::Drawing;
use crate::draw::svg::{draw, escaped};

/// Script for panning and zooming.
const SCRIPT: &str = r#"
const svg = document.querySelector("svg"), view = svg.querySelector(".view");
let x = 0, y = 0, scale = 1, held = null;
const place = () => view.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
const point = e => new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
svg.addEventListener("wheel", e => {
  e.preventDefault();
  const p = point(e), factor = Math.exp(-e.deltaY / 500);
  x = p.x - (p.x - x) * factor; y = p.y - (p.y - y) * factor; scale *= factor;
  place();
}, { passive: false });
svg.addEventListener("pointerdown", e => { held = point(e); svg.setPointerCapture(e.pointerId); });
svg.addEventListener("pointermove", e => {
  if (!held) return;
  const p = point(e);
  x += p.x - held.x; y += p.y - held.y; held = p;
  place();
});
svg.addEventListener("pointerup", () => { held = null; });
svg.addEventListener("dblclick", () => { x = 0; y = 0; scale = 1; place(); });
"#;

impl Drawing<'_> {
    /// Renders the picture as a self-contained web page, with panning by dragging, zooming by the mouse wheel, and tooltips
    /// of nodes and edges.
    pub fn to_html(&self) -> String {
        page(self)
    }
}

fn page(drawing: &Drawing<'_>) -> String {
    let title = if drawing.title.is_empty() { "Graph" } else { &drawing.title };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>\n\
         body {{ margin: 0; font-family: sans-serif; }}\nsvg {{ width: 100vw; height: 100vh; cursor: grab; touch-action: none; }}\n\
         .node:hover {{ stroke: #000000; }}\n.edge:hover {{ stroke-opacity: 1; }}\n</style>\n</head>\n<body>\n{}<script>{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(title),
        draw(drawing)
    )
}
