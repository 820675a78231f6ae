//! What is known of the tables that rules are held against.

/// A table of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFacts {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, in the order of the rows that masks are given.
    pub columns: Vec<ColumnFacts>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Its name.
    pub name: String,
    /// What kind of value it holds.
    pub class: TypeClass,
    /// The type as the database names it: `character varying(40)`, `citext`.
    pub type_name: String,
    /// The most characters it takes; none: no limit.
    pub chars_max: Option<u32>,
    /// Whether it takes NULL.
    pub nullable: bool,
    /// Whether no two rows may hold the same value.
    pub unique: bool,
    /// Whether it is a foreign key, or one refers to it.
    pub references: bool,
    /// Whether the database computes it.
    pub generated: bool,
}

impl ColumnFacts {
    /// Whether it takes texts that differ only in case for the same.
    pub(crate) fn any_case(&self) -> bool {
        self.type_name == "citext" || self.type_name.ends_with(".citext")
    }
}

/// Types, as far as masks tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeClass {
    /// Any text.
    Text,
    /// A whole number with a sign.
    Integer {
        /// Its width: 2, 4 or 8.
        bytes: u8,
    },
    /// A decimal number.
    Number {
        /// The most digits in all; none: no limit.
        precision: Option<u32>,
        /// Digits after the point; none: no limit.
        scale: Option<i32>,
    },
    /// A binary floating-point number.
    Float,
    /// `t` or `f`.
    Boolean,
    /// A day.
    Date,
    /// A moment without a time zone.
    Timestamp,
    /// A moment with a time zone.
    TimestampTz,
    /// A time of day.
    Time,
    /// A span of time.
    Interval,
    /// A UUID.
    Uuid,
    /// JSON, in text or binary form.
    Json,
    /// XML.
    Xml,
    /// Bytes, as `\x…`.
    Bytes,
    /// Anything else: enums, arrays, ranges, composites.
    Other,
}

impl TypeClass {
    /// How users call it.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            TypeClass::Text => "text",
            TypeClass::Integer { .. } => "an integer",
            TypeClass::Number { .. } => "a decimal number",
            TypeClass::Float => "a floating-point number",
            TypeClass::Boolean => "a boolean",
            TypeClass::Date => "a date",
            TypeClass::Timestamp | TypeClass::TimestampTz => "a timestamp",
            TypeClass::Time => "a time of day",
            TypeClass::Interval => "an interval",
            TypeClass::Uuid => "a UUID",
            TypeClass::Json => "JSON",
            TypeClass::Xml => "XML",
            TypeClass::Bytes => "bytes",
            TypeClass::Other => "of another type",
        }
    }

    /// Whether it holds numbers of any kind.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, TypeClass::Integer { .. } | TypeClass::Number { .. } | TypeClass::Float)
    }

    /// Whether it holds days or moments.
    pub(crate) fn is_date(&self) -> bool {
        matches!(self, TypeClass::Date | TypeClass::Timestamp | TypeClass::TimestampTz)
    }

    /// The largest value of an integer type.
    pub(crate) fn integer_max(&self) -> Option<u64> {
        match self {
            TypeClass::Integer { bytes } => {
                Some((1 << (8 * u32::from((*bytes).clamp(1, 8)) - 1)) - 1)
            }
            _ => None,
        }
    }

    /// A value that the rules list, as the database writes it.
    pub(crate) fn written(&self, value: &str) -> String {
        match (self, value) {
            (TypeClass::Boolean, "true") => "t".into(),
            (TypeClass::Boolean, "false") => "f".into(),
            _ => value.into(),
        }
    }

    /// Whether a column of this type takes a value that the rules list. Where only the database can say, it is
    /// taken to.
    pub(crate) fn takes(&self, value: &str) -> bool {
        match self {
            TypeClass::Integer { .. } => {
                let max = i128::from(self.integer_max().unwrap_or(0));
                value.parse::<i128>().is_ok_and(|number| (-max - 1..=max).contains(&number))
            }
            TypeClass::Number { .. } | TypeClass::Float => value.parse::<f64>().is_ok(),
            TypeClass::Boolean => matches!(value, "t" | "f" | "true" | "false"),
            TypeClass::Date | TypeClass::Timestamp | TypeClass::TimestampTz => {
                crate::moment::is_moment(value)
            }
            TypeClass::Uuid => {
                value.len() == 36 && value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
            }
            TypeClass::Json => serde_json::from_str::<serde::de::IgnoredAny>(value).is_ok(),
            TypeClass::Bytes => value.strip_prefix("\\x").is_some_and(|digits| {
                digits.len() % 2 == 0 && digits.bytes().all(|b| b.is_ascii_hexdigit())
            }),
            _ => true,
        }
    }
}
