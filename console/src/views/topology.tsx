// Which engines there are, and which sends to which.
import type { Topology, TopologyEngine } from "../schema";
import { Card, Empty } from "../ui/basics";

interface Node {
  engine: TopologyEngine;
  /** Those that it sends to; undefined: it was drawn above, with them. */
  to?: Node[];
}

/** A tree from each engine that nobody sends to; what was drawn is not drawn again, so that circles end. */
export function treesOf({ engines, links }: Topology): Node[] {
  const drawn = new Set<string>();
  const draw = (engine: TopologyEngine): Node => {
    if (drawn.has(engine.engine)) return { engine };
    drawn.add(engine.engine);
    return { engine, to: engines.filter((one) => links.some(({ from, to }) => from === engine.engine && to === one.engine)).map(draw) };
  };
  const isSentTo = (one: TopologyEngine) => links.some(({ to }) => to === one.engine);
  const trees: Node[] = [];
  for (const one of [...engines.filter((one) => !isSentTo(one)), ...engines.filter(isSentTo)]) {
    if (!drawn.has(one.engine)) trees.push(draw(one));
  }
  return trees;
}

export function TopologyCard({ of }: { of: Topology }) {
  return (
    <Card title="Who sends to whom">
      {of.links.length === 0 ? (
        <Empty>This engine sends to no other, and none sends here.</Empty>
      ) : (
        <ul class="topology">
          {treesOf(of).map((node) => (
            <Branch key={node.engine.engine} of={node} />
          ))}
        </ul>
      )}
    </Card>
  );
}

function Branch({ of: { engine, to } }: { of: Node }) {
  return (
    <li>
      {engine.name ?? <strong>this engine</strong>}
      {!to ? " (above)" : engine.as_of ? "" : " (not heard of by itself)"}
      {to && to.length > 0 && (
        <>
          {" sends to"}
          <ul>
            {to.map((node) => (
              <Branch key={node.engine.engine} of={node} />
            ))}
          </ul>
        </>
      )}
    </li>
  );
}
