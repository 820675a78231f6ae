//! Paths into a document, JSON or XML.

/// A step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// To an object's member.
    Member(String),
    /// To a list's item.
    Item(usize),
}

/// What a step may be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Member(String),
    Item(usize),
    AnyMember,
    AnyItem,
    /// Any steps, or none.
    AnyDepth,
}

/// A path from a document's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(Vec<Part>);

impl Path {
    /// Reads `$.a.b[*].c`, `$..a`, `$['a b']`; the `$.` may be left out.
    pub fn parse(text: &str) -> Option<Path> {
        let mut parts = Vec::new();
        let mut rest = match text.strip_prefix('$') {
            Some(rest) => rest.to_owned(),
            None => format!(".{text}"),
        };
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix("['") {
                let (name, after) = inside.split_once("']")?;
                parts.push(Part::Member(name.to_owned()));
                rest = after.to_owned();
            } else if let Some(inside) = rest.strip_prefix('[') {
                let (number, after) = inside.split_once(']')?;
                parts.push(match number {
                    "*" => Part::AnyItem,
                    number => Part::Item(number.parse().ok()?),
                });
                rest = after.to_owned();
            } else {
                let mut name = rest.strip_prefix('.')?;
                if let Some(deeper) = name.strip_prefix('.') {
                    parts.push(Part::AnyDepth);
                    name = deeper;
                }
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                parts.push(match name {
                    "" => return None,
                    "*" => Part::AnyMember,
                    name => Part::Member(name.to_owned()),
                });
                rest = after.to_owned();
            }
        }
        Some(Path(parts))
    }

    /// Reads `/a/b`, `//b`, `/a/@x`, `/a/*`: an attribute is a member whose name begins with `@`.
    pub fn parse_xml(text: &str) -> Option<Path> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.strip_prefix('/')?;
            if let Some(deeper) = rest.strip_prefix('/') {
                parts.push(Part::AnyDepth);
                rest = deeper;
            }
            let (name, after) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            parts.push(match name {
                "" | "@" => return None,
                "*" => Part::AnyMember,
                name => Part::Member(name.to_owned()),
            });
            rest = after;
        }
        (!parts.is_empty()).then_some(Path(parts))
    }

    /// Whether it leads to a value, or to one that holds it.
    pub fn leads_to(&self, steps: &[Step]) -> bool {
        leads(&self.0, steps)
    }
}

fn leads(parts: &[Part], steps: &[Step]) -> bool {
    let Some((part, parts)) = parts.split_first() else { return true };
    if *part == Part::AnyDepth {
        return (0..=steps.len()).any(|skipped| leads(parts, &steps[skipped..]));
    }
    let Some((step, steps)) = steps.split_first() else { return false };
    let fits = match (part, step) {
        (Part::Member(name), Step::Member(member)) => name == member,
        (Part::Item(number), Step::Item(item)) => number == item,
        (Part::AnyMember, _) | (Part::AnyItem, Step::Item(_)) => true,
        _ => false,
    };
    fits && leads(parts, steps)
}
