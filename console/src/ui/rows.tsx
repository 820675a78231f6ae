// Rows of a database, as they were before and are after.

/** A value; undefined: the row is not there, or was not before. */
export interface Change {
  before?: string | null | undefined;
  after?: string | null | undefined;
}

export function Rows({ label, columns, rows }: { label: string; columns: [name: string, note: string][]; rows: Change[][] }) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(([name, note], place) => (
              <th key={place} scope="col">
                {name} <small>{note}</small>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map(({ before, after }, place) => (
                <td key={place}>
                  {before !== undefined && <del>{before ?? "NULL"}</del>} {after !== undefined && (after ?? "NULL")}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
