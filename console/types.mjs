// The types of the API, from its document: what the engine answers is what the console is checked against.

/** A module with one type for each schema of an OpenAPI 3.1 document. */
export function typesOf(document) {
  const types = Object.entries(document.components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};\n`,
  );
  return `// Made from openapi/offshoot.json by build.mjs.\n${types.join("")}`;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const some = schema.oneOf ?? schema.anyOf;
  if (some) return some.map(typeOf).join(" | ");
  if (schema.allOf) return schema.allOf.map(typeOf).join(" & ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(" | ");
  switch (schema.type) {
    case "null":
      return "null";
    case "string":
      return "string";
    case "boolean":
      return "boolean";
    case "integer":
    case "number":
      return "number";
    case "array":
      return `Array<${typeOf(schema.items)}>`;
    case "object":
      return objectOf(schema);
    default:
      return "unknown";
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }) {
  const fields = Object.entries(properties).map(
    ([name, schema]) => `${JSON.stringify(name)}${required.includes(name) ? "" : "?"}: ${typeOf(schema)}`,
  );
  if (fields.length === 0 && typeof additionalProperties === "object") {
    return `Record<string, ${typeOf(additionalProperties)}>`;
  }
  return `{ ${fields.join("; ")} }`;
}
