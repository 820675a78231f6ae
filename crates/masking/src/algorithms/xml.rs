//! `xml`: parts of an XML document, each by a rule of its own.
//!
//! - Parameter: `paths`, a rule for each path: `/order/customer/name`, `/order/customer/@email`, `//phone` (at any
//!   depth), `/order/*`. Names are compared without their namespace's prefix. A path that leads to an element has every
//!   text and attribute inside masked; of several paths to one the first counts. `"//*"` masks everything. Comments and
//!   processing instructions are left out, as nobody knows what they say; everything else is copied as it is. A mask that is NULL is an empty text.
//! - Lossy. XML and texts that hold XML.
//! - The output tells everything that no path leads to, all names and the structure.

use super::nested;
use super::path::{Path, Step};
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use std::sync::Arc;

mod scanner;

const EXAMPLE: &str = "{algorithm: xml, paths: {/order/@email: email, //name: full-name}}";

pub(super) const ENTRY: Entry = Entry {
    name: "xml",
    tells: "what no path leads to",
    parameters: &["paths"],
    read: |parameters| {
        let paths = nested::read_paths(parameters, Path::parse_xml, EXAMPLE)?;
        Ok(Arc::new(Xml { paths }))
    },
};

#[derive(Debug)]
struct Xml {
    paths: nested::Paths,
}

impl Algorithm for Xml {
    fn fits(&self, class: &TypeClass) -> bool {
        matches!(class, TypeClass::Xml | TypeClass::Text)
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn per(&self) -> Option<&str> {
        self.paths.iter().find_map(|(_, rule)| rule.per())
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let mut paths = Vec::new();
        for (path, rule) in &self.paths {
            paths.push((path.clone(), nested::bind_part(rule.as_ref(), target)?));
        }
        Ok(Mask::Values(Arc::new(XmlMask { paths })))
    }
}

struct XmlMask {
    paths: Vec<(Path, Arc<dyn ValueMask>)>,
}

impl ValueMask for XmlMask {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        scanner::Scanner { rest: value, steps: Vec::new(), row, rules: self, out }.document()?;
        Ok(Outcome::Value)
    }
}

impl XmlMask {
    fn rule(&self, steps: &[Step]) -> Option<&Arc<dyn ValueMask>> {
        self.paths.iter().find(|(path, _)| path.leads_to(steps)).map(|(_, mask)| mask)
    }
}
