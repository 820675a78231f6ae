//! A YAML document as a tree that keeps its order.

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What TOML calls the only field of a date.
const TOML_DATE: &str = "$__toml_private_datetime";

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// A number as text.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A text, number or boolean as text.
    pub fn scalar(&self) -> Option<String> {
        match self {
            Node::Bool(flag) => Some(flag.to_string()),
            Node::Number(text) | Node::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn title(&self) -> &'static str {
        match self {
            Node::Null => "empty",
            Node::Bool(_) => "`true` or `false`",
            Node::Number(_) => "a number",
            Node::Text(_) => "a text",
            Node::List(_) => "a list",
            Node::Map(_) => "a map",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// As JSON. Numbers are written as texts: every rule takes either.
impl Serialize for Node {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Bool(flag) => serializer.serialize_bool(*flag),
            Node::Number(text) | Node::Text(text) => serializer.serialize_str(text),
            Node::List(list) => serializer.collect_seq(list),
            Node::Map(map) => serializer.collect_map(map.iter().map(|(name, node)| (name, node))),
        }
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_i128<E: Error>(self, number: i128) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_u128<E: Error>(self, number: u128) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map: Vec<(String, Node)> = Vec::new();
        while let Some(name) = entries.next_key::<Node>()? {
            let name = name.scalar().ok_or_else(|| A::Error::custom("a key is not a text"))?;
            map.push((name, entries.next_value()?));
        }
        if let [(name, Node::Text(date))] = &map[..]
            && name == TOML_DATE
        {
            return Ok(Node::Text(date.clone()));
        }
        Ok(Node::Map(map))
    }
}
