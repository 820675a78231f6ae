// Draws a time line on a canvas: any number of marks at the cost of its width.
import { colour } from "../theme";
import { firstFrom, ticks, type History, type Mark } from "./timeline-model";

export const HEIGHT = 112;
const LINE = 58;
const BAR = 14;

export interface View {
  from: number;
  to: number;
}

export function draw(canvas: HTMLCanvasElement, history: History, view: View, picked: number | null, focused: boolean): void {
  const width = canvas.clientWidth;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, HEIGHT);
  const x = (at: number): number => ((at - view.from) / (view.to - view.from)) * width;
  pen.fillStyle = colour("inset");
  pen.fillRect(0, LINE - BAR / 2, width, BAR);
  for (const { from, to } of history.ranges) {
    pen.fillStyle = colour("accent-soft");
    pen.fillRect(x(from), LINE - BAR / 2, Math.max(1.5, x(to) - x(from)), BAR);
  }
  for (const { from, to } of history.gaps) hatch(pen, x(from), Math.max(2, x(to) - x(from)));
  for (const at of history.starts) {
    pen.fillStyle = colour("warn");
    pen.fillRect(x(at) - 0.5, LINE - 18, 1, 36);
  }
  marks(pen, history.marks, view, width, x);
  axis(pen, view, width, x);
  if (picked !== null) cursor(pen, x(picked), focused);
}

function hatch(pen: CanvasRenderingContext2D, left: number, wide: number): void {
  pen.save();
  pen.beginPath();
  pen.rect(left, LINE - BAR / 2, wide, BAR);
  pen.clip();
  pen.fillStyle = colour("bad-soft");
  pen.fillRect(left, LINE - BAR / 2, wide, BAR);
  pen.strokeStyle = colour("bad");
  const from = Math.max(left, -BAR);
  const to = Math.min(left + wide, pen.canvas.width + BAR);
  for (let x = from - BAR; x < to; x += 6) {
    pen.beginPath();
    pen.moveTo(x, LINE + BAR / 2);
    pen.lineTo(x + BAR, LINE - BAR / 2);
    pen.stroke();
  }
  pen.restore();
}

/** One mark of each kind for each two pixels. */
function marks(pen: CanvasRenderingContext2D, all: Mark[], view: View, width: number, x: (at: number) => number): void {
  const drawn = new Set<string>();
  let named = -Infinity;
  const margin = ((view.to - view.from) / width) * 8;
  for (let index = firstFrom(all, view.from - margin); index < all.length; index++) {
    const mark = all[index] as Mark;
    if (mark.at > view.to + margin) break;
    const place = Math.round(x(mark.at) / 2) * 2;
    const key = `${mark.kind}${mark.ready}${place}`;
    if (drawn.has(key)) continue;
    drawn.add(key);
    if (mark.kind === "recovery") {
      pen.fillStyle = colour("soft");
      pen.fillRect(place - 0.5, LINE + BAR / 2, 1, 7);
    } else if (mark.kind === "snapshot") {
      dot(pen, place, mark.ready);
    } else {
      flag(pen, place);
      if (place - named > 90) {
        named = place;
        pen.fillStyle = colour("text");
        pen.font = "12px sans-serif";
        pen.textAlign = "left";
        pen.fillText(mark.name.length > 14 ? `${mark.name.slice(0, 13)}…` : mark.name, place + 12, LINE - 34);
      }
    }
  }
}

function dot(pen: CanvasRenderingContext2D, x: number, ready: boolean): void {
  pen.beginPath();
  pen.arc(x, LINE, 4.5, 0, 2 * Math.PI);
  pen.fillStyle = ready ? colour("accent") : colour("card");
  pen.strokeStyle = colour("accent");
  pen.lineWidth = 2;
  pen.fill();
  pen.stroke();
}

function flag(pen: CanvasRenderingContext2D, x: number): void {
  pen.fillStyle = colour("bookmark");
  pen.fillRect(x - 1, LINE - 44, 2, 44 - BAR / 2);
  pen.beginPath();
  pen.moveTo(x + 1, LINE - 44);
  pen.lineTo(x + 10, LINE - 39);
  pen.lineTo(x + 1, LINE - 34);
  pen.fill();
}

function axis(pen: CanvasRenderingContext2D, view: View, width: number, x: (at: number) => number): void {
  pen.fillStyle = colour("soft");
  pen.font = "12px sans-serif";
  pen.textAlign = "center";
  for (const { at, text } of ticks(view.from, view.to, Math.max(2, Math.floor(width / 90)))) {
    const place = x(at);
    pen.fillRect(place - 0.5, LINE + 24, 1, 5);
    if (place > 20 && place < width - 20) pen.fillText(text, place, LINE + 44);
  }
}

function cursor(pen: CanvasRenderingContext2D, x: number, focused: boolean): void {
  pen.fillStyle = colour("strong");
  pen.fillRect(x - 1, 6, 2, LINE + 16);
  pen.beginPath();
  pen.moveTo(x - 6, 2);
  pen.lineTo(x + 6, 2);
  pen.lineTo(x, 11);
  pen.fill();
  if (!focused) return;
  pen.strokeStyle = colour("strong");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, LINE, 9, 0, 2 * Math.PI);
  pen.stroke();
}
