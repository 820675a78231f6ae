//! Examples of every algorithm; what holds for all values is in `tests/properties.rs`.

use crate::*;
use std::collections::HashSet;

fn column(name: &str, class: TypeClass) -> ColumnFacts {
    ColumnFacts {
        name: name.into(),
        class,
        type_name: "text".into(),
        chars_max: None,
        nullable: true,
        unique: false,
        references: false,
        generated: false,
    }
}

/// The mask of a value by a rule, in a row whose other column `id` is 7.
fn masked_in(class: TypeClass, rule: &str, value: &str) -> Result<String, String> {
    let rules = format!("version: 1\nkey: main\ntables: {{t: {{columns: {{c: {rule}}}}}}}");
    let rules = Ruleset::parse(&rules).map_err(|failure| failure.message)?;
    let columns = vec![column("c", class), column("id", TypeClass::Integer { bytes: 4 })];
    let facts = TableFacts { schema: "public".into(), name: "t".into(), columns };
    let mut bound = rules.bind(&[facts], &MaskingKey::new(b"secret"));
    if !bound.problems.is_empty() {
        return Err(bound.problems.join("; "));
    }
    let Some(BoundTable { treatment: Treatment::Mask { columns, .. }, .. }) = bound.tables.pop()
    else {
        return Ok(value.into());
    };
    let Mask::Values(mask) = &columns[0].mask else { return Err("it is SQL".into()) };
    let mut out = String::from("before ");
    match mask.mask(value, &Row { values: &[Some(value), Some("7")] }, &mut out) {
        Ok(Outcome::Value) => Ok(out.strip_prefix("before ").expect("it is appended").to_owned()),
        Ok(Outcome::Null) => Ok("NULL".into()),
        Err(unmaskable) => Err(unmaskable.why.into()),
    }
}

fn masked(rule: &str, value: &str) -> String {
    masked_in(TypeClass::Text, rule, value).expect("it is masked")
}

const INTEGER: TypeClass = TypeClass::Integer { bytes: 4 };
const MONEY: TypeClass = TypeClass::Number { precision: Some(10), scale: Some(2) };

#[test]
fn empty_texts_stay_empty() {
    for rule in ["email", "full-name", "{algorithm: constant, value: x}", "fpe", "'null'"] {
        assert_eq!(masked(rule, ""), "", "{rule}");
    }
}

#[test]
fn a_full_name_agrees_with_first_and_last_name() {
    let full = masked("full-name", "Maria Theresa Jones");
    let first = masked("first-name", "Maria Theresa");
    assert_eq!(full, format!("{first} {}", masked("last-name", "Jones")));
    assert_eq!(masked("full-name", "Jones, Maria Theresa"), {
        format!("{}, {first}", masked("last-name", "Jones"))
    });
    assert_eq!(masked("{algorithm: last-name, keep: case}", "JONES"), {
        masked("last-name", "Jones").to_uppercase()
    });
    let women = super::dictionary::WOMEN;
    for name in ["Sarah", "MARY", "Frau Xyz", "anna-lena"] {
        let mask = masked("{algorithm: first-name, keep: gender}", name);
        assert!(women.contains(&mask.as_str()), "{mask} stands for {name}");
    }
}

#[test]
fn city_and_postcode_of_one_entity_agree() {
    let city = masked("{algorithm: city, per: id, country: DE}", "Berlin");
    let postcode = masked("{algorithm: postcode, per: id, country: DE}", "10115");
    let place = super::dictionary::PLACES.iter().find(|place| place.city == city).expect("known");
    assert_eq!((place.country, place.postcode), ("DE", postcode.as_str()));
    let kept = masked("{algorithm: postcode, keep-first: 2}", "SW1A 1AA");
    assert!(kept.starts_with("SW") && kept.len() == 8 && kept.as_bytes()[4] == b' ', "{kept}");
    assert!(masked("address", "12 High Street").starts_with(|c: char| c.is_ascii_digit()));
    assert!(masked("address", "Hochstraße 12").ends_with(|c: char| c.is_ascii_digit()));
}

#[test]
fn telephone_numbers_keep_country_and_form() {
    let mask = masked("phone", "+49 (0)89 123-456");
    assert!(mask.starts_with("+49 (0)") && mask.len() == 17, "{mask}");
    assert_ne!(mask, "+49 (0)89 123-456");
    assert!(masked("phone", "+1 212 555 0100 ext. 5").starts_with("+1 "));
    assert!(masked("phone", "+353 1 555").starts_with("+353 "));
    assert!(masked("phone", "00441234567").starts_with("0044"));
    assert_ne!(masked("phone", "ask Maria"), "ask Maria");
}

#[test]
fn no_other_text_gets_the_mask_of_a_telephone_number() {
    // Words of telephone numbers stay, and other texts of the form must not become numbers with such words.
    let short = ('a'..='z').flat_map(|letter| (0..10).map(move |digit| format!("{letter}{digit}")));
    let masks: HashSet<_> = short.map(|text| masked("phone", &text)).collect();
    assert_eq!(masks.len(), 260);
}

#[test]
fn cards_are_valid_and_keep_their_network() {
    let mask = masked("payment-card", "4111-1111-1111-1111");
    assert!(super::is_card(&mask) && mask.starts_with('4') && mask.len() == 19, "{mask}");
    let mask = masked("{algorithm: payment-card, keep: bin}", "4111 1111 1111 1111");
    assert!(super::is_card(&mask) && mask.starts_with("4111 11"), "{mask}");
    // Of invalid ones, too.
    assert!(super::is_card(&masked("payment-card", "4111111111111112")));
    assert_ne!(masked("payment-card", "unknown"), "unknown");
}

#[test]
fn ibans_are_valid_and_keep_their_country() {
    for iban in ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"] {
        assert!(super::is_iban(iban));
        let mask = masked("iban", iban);
        assert!(super::is_iban(&mask), "{mask}");
        assert_eq!((&mask[..2], mask.len()), (&iban[..2], iban.len()));
        assert_ne!(mask, iban);
    }
}

#[test]
fn national_ids_are_valid() {
    let rule = |country: &str| format!("{{algorithm: national-id, country: {country}}}");
    let valid = [
        ("BR", "529.982.247-25"),
        ("CA", "130 692 544"),
        ("CH", "756.9217.0769.85"),
        ("DE", "86095742719"),
        ("ES", "12345678Z"),
        ("ES", "X1234567L"),
        ("FR", "2 55 08 14 168 025 38"),
        ("GB", "AB 12 34 56 C"),
        ("IT", "RSSMRA85T10A562S"),
        ("NL", "111222333"),
        ("PL", "44051401359"),
        ("SE", "811218-9876"),
        ("US", "078-05-1120"),
    ];
    for (country, id) in valid {
        let mask = masked(&rule(country), id);
        assert_ne!(mask, id);
        assert!(super::national_id::is_valid(country, id), "{id}");
        assert!(super::national_id::is_valid(country, &mask), "{country}: {mask}");
        let form = |text: &str| text.find([' ', '-', '.']);
        assert_eq!(form(&mask), form(id));
    }
    assert_ne!(masked(&rule("US"), "n/a yet"), "n/a yet");
    assert!(masked_in(TypeClass::Text, &rule("XX"), "1").unwrap_err().contains("not known"));
}

#[test]
fn dates_shift_within_bounds_and_never_stay() {
    let rule = "{algorithm: date-shift, min: -2d, max: 2d}";
    let shifts: HashSet<String> = (1..=28)
        .map(|day| {
            let date = format!("2024-03-{day:02}");
            let mask = masked_in(TypeClass::Date, rule, &date).expect("it is masked");
            let number = |text: &str| match crate::moment::parse(text) {
                Some(crate::moment::Parsed::Finite(moment)) => moment.day,
                _ => panic!("{text} is a day"),
            };
            (number(&mask) - number(&date)).to_string()
        })
        .collect();
    assert_eq!(shifts, ["-2", "-1", "1", "2"].map(String::from).into());
    assert_eq!(masked_in(TypeClass::Date, rule, "infinity").unwrap(), "infinity");
    let per = "{algorithm: date-shift, min: -30d, max: 30d, per: id}";
    let stamp = masked_in(TypeClass::TimestampTz, per, "2024-01-01 12:30:00.5+01").unwrap();
    let day = masked_in(TypeClass::Date, per, "2024-01-01").unwrap();
    assert_eq!(stamp, format!("{day} 12:30:00.5+01"), "all dates of an entity shift alike");
    let hours = "{algorithm: date-shift, min: -12h, max: 12h}";
    assert!(masked_in(TypeClass::Date, hours, "2024-01-01").is_err(), "a date has no hours");
    let except = "{algorithm: date-shift, except: [9999-12-31]}";
    assert_eq!(masked_in(TypeClass::Date, except, "9999-12-31").unwrap(), "9999-12-31");
}

#[test]
fn dates_roll_within_month_week_or_year() {
    let roll = |within: &str, date: &str| {
        let rule = format!("{{algorithm: date-roll, within: {within}}}");
        masked_in(TypeClass::Date, &rule, date).expect("it is masked")
    };
    for day in 1..=29 {
        let date = format!("2024-02-{day:02}");
        assert!(roll("month", &date).starts_with("2024-02-") && roll("month", &date) != date);
        assert!(roll("year", &date).starts_with("2024-"));
    }
    // A Monday and the Sunday after it.
    for date in ["2024-01-01", "2024-01-07"] {
        assert!(("2024-01-01"..="2024-01-07").contains(&roll("week", date).as_str()));
    }
}

#[test]
fn noise_stays_near_and_within_the_column() {
    let rule = "{algorithm: number-noise, percent: 10}";
    let mask = masked_in(MONEY, rule, "1000.00").unwrap();
    let number: f64 = mask.parse().unwrap();
    assert!((900.0..=1100.0).contains(&number) && mask != "1000.00", "{mask}");
    assert_eq!(mask.split_once('.').map(|(_, cents)| cents.len()), Some(2));
    assert_eq!(masked_in(MONEY, rule, "NaN").unwrap(), "NaN");
    assert_eq!(masked_in(MONEY, rule, "0.00").unwrap(), "0.00");
    assert_ne!(masked_in(INTEGER, rule, "3").unwrap(), "3");
    for value in ["2147483647", "-2147483647"] {
        let mask: i64 = masked_in(INTEGER, rule, value).unwrap().parse().unwrap();
        assert!(i32::try_from(mask).is_ok());
    }
    let bounded = "{algorithm: number-noise, amount: 50, min: 0, max: 100}";
    for value in 0..=100 {
        let mask: i64 = masked_in(INTEGER, bounded, &value.to_string()).unwrap().parse().unwrap();
        assert!((0..=100).contains(&mask) && (mask - value).abs() <= 50);
    }
    let mask: f64 = masked_in(TypeClass::Float, rule, "1e+20").unwrap().parse().unwrap();
    assert!((0.9e20..=1.1e20).contains(&mask));
}

#[test]
fn outliers_become_the_bound() {
    let rule = "{algorithm: min-max, min: 10, max: 20.5}";
    for (value, mask) in [("9.99", "10"), ("15", "15"), ("21", "20.5"), ("NaN", "NaN")] {
        assert_eq!(masked_in(MONEY, rule, value).unwrap(), mask);
    }
    let dates = "{algorithm: min-max, min: 1920-01-01, replace: 1900-01-01}";
    for (value, mask) in [("1890-01-01", "1900-01-01"), ("1990-05-05", "1990-05-05")] {
        assert_eq!(masked_in(TypeClass::Date, dates, value).unwrap(), mask);
    }
}

#[test]
fn bytes_become_others() {
    let mask = masked_in(TypeClass::Bytes, "binary-lookup", "\\x0123456789").unwrap();
    assert!(mask.starts_with("\\x") && mask.len() == 12 && mask != "\\x0123456789", "{mask}");
    assert_eq!(masked_in(TypeClass::Bytes, "binary-lookup", "\\x").unwrap(), "\\x");
    let rule = "{algorithm: binary-lookup, length: 100}";
    assert_eq!(masked_in(TypeClass::Bytes, rule, "\\x01").unwrap().len(), 202);
}

#[test]
fn mapped_texts_and_numbers_keep_their_form() {
    let mask = masked("character-mapping", "AB-12 é");
    let kinds: Vec<_> = mask.chars().map(|c| (c.is_uppercase(), c.is_ascii_digit())).collect();
    assert_eq!(kinds[0], (true, false), "{mask}");
    assert_eq!((kinds[3], mask.chars().nth(2)), ((false, true), Some('-')), "{mask}");
    let uuid = "123e4567-e89b-42d3-a456-426614174000";
    let mask = masked_in(TypeClass::Uuid, "character-mapping", uuid).unwrap();
    assert_eq!((mask.len(), &mask[14..15], &mask[19..20]), (36, "4", "a"));
    for bytes in [2, 4, 8] {
        let class = TypeClass::Integer { bytes };
        let max = class.integer_max().unwrap();
        for value in [max.to_string(), format!("-{}", max + 1), "1".into(), "0".into(), "-9".into()]
        {
            let mask = masked_in(class.clone(), "character-mapping", &value).unwrap();
            assert!(class.takes(&mask), "{mask}");
            assert_eq!(mask.len(), value.len());
        }
    }
    let kept = masked("{algorithm: character-mapping, keep-first: 2, keep-last: 1}", "ABCDEF");
    assert!(kept.starts_with("AB") && kept.ends_with('F') && kept != "ABCDEF", "{kept}");
}

#[test]
fn integers_of_a_type_are_permuted() {
    for bytes in [2, 4, 8] {
        let class = TypeClass::Integer { bytes };
        let masks: HashSet<String> = (-200..200)
            .map(|number: i32| masked_in(class.clone(), "fpe", &number.to_string()).unwrap())
            .collect();
        assert_eq!(masks.len(), 400);
        assert!(masks.iter().all(|mask| class.takes(mask) && mask != "-0"));
    }
    // One digit, two, and both signs: every number below 1,000 by character-mapping.
    let masks: HashSet<String> = (-999..1000)
        .map(|number: i32| masked_in(INTEGER, "character-mapping", &number.to_string()).unwrap())
        .collect();
    assert_eq!(masks.len(), 1999);
}

#[test]
fn encryption_refuses_what_it_cannot_hide() {
    assert!(masked("fpe", "12-34-56").chars().filter(|c| *c == '-').count() == 2);
    assert!(masked_in(TypeClass::Text, "fpe", "12345").unwrap_err().contains("too short"));
    assert!(masked_in(TypeClass::Text, "fpe", "A123456").unwrap_err().contains("alphabet"));
    let rule = "{algorithm: fpe, alphabet: alphanumeric, tweak: x}";
    assert_eq!(masked(rule, "abC-9").len(), 5);
    assert!(masked_in(TypeClass::Text, rule, "Müller").unwrap_err().contains("alphabet"));
}

#[test]
fn tokens_turn_back_with_the_key_only() {
    for value in ["a", "ab", "Zoë 🦀", "long text long text long text"] {
        let token = masked("tokenize", value);
        assert_eq!(detokenize(&MaskingKey::new(b"secret"), &token).as_deref(), Some(value));
        assert_eq!(detokenize(&MaskingKey::new(b"other"), &token), None);
        assert_eq!(detokenize(&MaskingKey::new(b"secret"), &token[1..]), None);
    }
    for token in ["", "a", "ab", "é", "====", &"A".repeat(21)] {
        assert_eq!(detokenize(&MaskingKey::new(b"secret"), token), None);
    }
}

#[test]
fn prose_loses_what_names_people() {
    let text = "Mail maria.müller@firm.test or call +49 89 1234567 on 2024-01-31, card 4111 1111 1111 1111, \
                IBAN DE89370400440532013000, order 12345, from 10.0.0.1, SSN 078-05-1120. Project Falcon.";
    let rule = "{algorithm: free-text-redaction, words: [falcon]}";
    let expected = "Mail [e-mail] or call [phone] on 2024-01-31, card [card], IBAN [iban], order 12345, from [ip], \
                    SSN [ssn]. Project [word].";
    assert_eq!(masked(rule, text), expected);
    let rule = "{algorithm: free-text-redaction, words: [c++, ann]}";
    assert_eq!(masked(rule, "Ann knows C++, Anna not"), "[word] knows [word], Anna not");
    let rule = "{algorithm: free-text-redaction, kinds: e-mail, names: true, with: '***'}";
    assert_eq!(masked(rule, "Hello Anna, a@b.co?"), "Hello ***, ***?");
}

#[test]
fn documents_keep_what_no_path_leads_to() {
    let rule = r#"{algorithm: json, paths: {$.email: email, "$.items[*].n": {algorithm: number-noise, percent: 50},
        $.gone: "null", "$..phone": phone}}"#;
    let document = r#"{"z": 1.10, "email" : "a@b.test", "items": [{"n": 1000, "n2": 1e400}], "gone": true,
        "x": {"phone": ["+1 2345678", null, ""]}, "u": "\ud83e\udd80 \"q\""}"#;
    let mask = masked_in(TypeClass::Json, rule, document).expect("it is masked");
    assert!(mask.starts_with(r#"{"z": 1.10, "email" : ""#), "{mask}");
    assert!(mask.contains("@example.com") && mask.contains(r#""n2": 1e400"#), "{mask}");
    assert!(mask.contains(r#""gone": null"#) && mask.contains(r#", null, ""]"#), "{mask}");
    assert!(!mask.contains("1000") && !mask.contains("2345678"), "{mask}");
    assert!(mask.ends_with(r#""u": "\ud83e\udd80 \"q\""}"#), "{mask}");
    let deep = "[".repeat(10_000);
    for text in
        ["{", "[1,]", "{\"a\"}", "\"", "\"\\", "nul", "01", "1 2", "{\"a\":}", deep.as_str()]
    {
        assert!(masked_in(TypeClass::Text, rule, text).is_err(), "{text:.10}");
    }
}

#[test]
fn xml_keeps_what_no_path_leads_to() {
    let rule = r#"{algorithm: xml, paths: {/o/c/@email: email, //n:name: 'null', //name: full-name, /o/note: "null"}}"#;
    assert!(masked_in(TypeClass::Xml, "{algorithm: xml, paths: {name: email}}", "<a/>").is_err());
    let document = "<?xml version=\"1.0\"?>\n<o xmlns:n='u'> <!-- Maria --><c id=\"1\" email = 'a&amp;b@c.test'/>\
        <n:name> Maria Jones\n</n:name><t>5 &lt; 6</t><note>x<b at='y'>z</b><![CDATA[<w>]]></note></o>";
    let mask = masked_in(TypeClass::Xml, rule, document).expect("it is masked");
    let name = masked("full-name", "Maria Jones");
    let email = masked("email", "a&b@c.test");
    assert_eq!(
        mask,
        format!(
            "<?xml version=\"1.0\"?>\n<o xmlns:n='u'> <c id=\"1\" email = '{email}'/>\
             <n:name> {name}\n</n:name><t>5 &lt; 6</t><note><b at=''></b></note></o>"
        )
    );
    let deep = "<a>".repeat(1000);
    for text in [
        "<a>",
        "</a>",
        "<a",
        "<a b>",
        "<a b=c/>",
        "<!-- ",
        "<!DOCTYPE a [<!ENTITY x 'y'>]><a/>",
        "<",
        &deep,
    ] {
        assert!(masked_in(TypeClass::Text, rule, text).is_err(), "{text:.20}");
    }
}

#[test]
fn segments_and_chains_apply_their_rules() {
    let rule =
        r#"{algorithm: segments, pattern: "([A-Z]+)-(?P<n>\\d+)", groups: {n: character-mapping}}"#;
    let mask = masked(rule, "ORDER-12345");
    assert!(mask.starts_with("ORDER-") && mask != "ORDER-12345", "{mask}");
    assert_ne!(masked(rule, "Maria"), "Maria", "what the pattern does not fit is masked, too");
    let chain = masked("[email, tokenize]", "a@b.test");
    let email = detokenize(&MaskingKey::new(b"secret"), &chain).expect("it is a token");
    assert_eq!(email, masked("email", "a@b.test"));
    assert_eq!(masked("[email, 'null', email]", "x"), "NULL");
    assert!(masked_in(TypeClass::Text, "[{algorithm: sql, expression: x}]", "x").is_err());
}

#[test]
fn lists_and_maps_give_their_values() {
    let rule = "{algorithm: secure-lookup, values: [red, green, blue]}";
    let masks: HashSet<String> = (0..50).map(|n| masked(rule, &n.to_string())).collect();
    assert_eq!(masks.len(), 3);
    let rule = "{algorithm: secure-lookup, values: [1, 2, 3000000000]}";
    assert!(masked_in(INTEGER, rule, "1").unwrap_err().contains("does not fit"));
    let flag = masked_in(TypeClass::Boolean, "{algorithm: constant, value: true}", "f").unwrap();
    assert_eq!(flag, "t");
    let rule = "{algorithm: cleansing, map: {great britain: GB}, ignore-case: true, otherwise: XX}";
    assert_eq!((masked(rule, "Great Britain"), masked(rule, "?")), ("GB".into(), "XX".into()));
    assert_eq!(masked("keep", "as it is"), "as it is");
}

#[test]
fn the_list_of_algorithms_is_sorted() {
    assert!(super::ENTRIES.windows(2).all(|pair| pair[0].name < pair[1].name));
}

/// `docs/masking.md`, whose example must work and whose table must be complete.
#[test]
fn the_guide_is_right() {
    let guide = include_str!("../../../../docs/masking.md");
    for entry in super::ENTRIES {
        let mut rows =
            guide.lines().filter(|line| line.starts_with(&format!("| `{}`", entry.name)));
        let row = rows.next().unwrap_or_else(|| panic!("{} is not in the guide", entry.name));
        let row = rows.fold(row.to_owned(), |all, row| all + row);
        for parameter in entry.parameters {
            assert!(row.contains(&format!("`{parameter}")), "{}: {parameter}", entry.name);
        }
    }
    let example = guide.split("```yaml").nth(1).and_then(|rest| rest.split("```").next());
    let rules = Ruleset::parse(example.expect("there is an example")).expect("it is read");
    let table = |name: &str, columns: &[(&str, TypeClass)]| TableFacts {
        schema: "public".into(),
        name: name.into(),
        columns: columns.iter().map(|(name, class)| column(name, class.clone())).collect(),
    };
    let text = TypeClass::Text;
    let mut customers: Vec<_> = ["email", "name", "phone", "street", "city", "zip", "card", "note"]
        .map(|name| (name, text.clone()))
        .into();
    customers.extend([("id", INTEGER), ("born", TypeClass::Date), ("profile", TypeClass::Json)]);
    let tables = [
        table("customers", &customers),
        table("payments", &[("iban", text.clone()), ("amount", MONEY), ("country", text.clone())]),
        table("orders", &[("customer_email", text.clone())]),
        table("audit_2024", &[("customer_email", text)]),
    ];
    let bound = rules.bind(&tables, &MaskingKey::new(b"secret"));
    assert_eq!((bound.problems, bound.idle, bound.unruled), Default::default());
    assert_eq!(bound.tables.len(), 4);
    // The masks that it shows.
    for (rule, value, mask) in [
        ("email", "maria@firm.test", "bruno-marrp7y2u2ub2p@example.com"),
        ("{algorithm: full-name, keep: gender}", "Maria Jones", "Freya Blanco"),
        ("phone", "+49 89 1234567", "+49 54 0007467"),
        ("payment-card", "4111 1111 1111 1111", "4737 9217 3737 3679"),
        ("iban", "DE89370400440532013000", "DE69874614869533926443"),
    ] {
        assert_eq!(masked(rule, value), mask);
        assert!(guide.contains(&format!("| `{value}` | `{mask}` |")), "{rule}");
    }
}

/// What a report tells of an algorithm is what the guide says.
#[test]
fn the_guide_says_of_every_algorithm_what_reports_say() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/masking.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let table = guide.split("| algorithm, parameters").nth(1).expect("the table is there");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    for entry in crate::algorithms::ENTRIES {
        let rows: Vec<&&str> =
            rows.iter().filter(|row| row.starts_with(&format!("| `{}`", entry.name))).collect();
        assert!(!rows.is_empty(), "{} is not in the guide", entry.name);
        let tells: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.trim_end_matches([' ', '|']).rsplit(" | ").next())
            .collect();
        match rows.len() {
            1 => assert_eq!(tells, [entry.tells], "{}", entry.name),
            // With other parameters it tells something else.
            _ => assert!(entry.tells.contains(tells[0]), "{}: {tells:?}", entry.name),
        }
    }
}

fn array(element: &str, rule: &str, value: &str) -> Result<String, String> {
    let rules = format!(
        "version: 1\nkey: main\ntables: {{t: {{columns: {{c: {{algorithm: array, rule: {rule}}}}}}}}}"
    );
    let rules = Ruleset::parse(&rules).map_err(|failure| failure.message)?;
    let column = ColumnFacts { type_name: format!("{element}[]"), ..column("c", TypeClass::Other) };
    let facts = TableFacts { schema: "public".into(), name: "t".into(), columns: vec![column] };
    let bound = rules.bind(&[facts], &MaskingKey::new(b"secret"));
    if !bound.problems.is_empty() {
        return Err(bound.problems.join("; "));
    }
    let Treatment::Mask { columns, .. } = &bound.tables[0].treatment else {
        panic!("it is emptied")
    };
    let Mask::Values(mask) = &columns[0].mask else { panic!("it is SQL") };
    let mut out = String::new();
    match mask.mask(value, &Row { values: &[Some(value)] }, &mut out) {
        Ok(_) => Ok(out),
        Err(unmaskable) => Err(unmaskable.why.into()),
    }
}

#[test]
fn elements_of_arrays_are_masked_as_values_are() {
    let (a, b) = (masked("email", "a@b.test"), masked("email", "c \"d\"\\@e.test"));
    let value = r#"{a@b.test,NULL,"","c \"d\"\\@e.test"}"#;
    assert_eq!(array("text", "email", value), Ok(format!("{{\"{a}\",NULL,\"\",\"{b}\"}}")));
    // Bounds and dimensions stay.
    let value = "[0:1][2:2]={{a@b.test},{a@b.test}}";
    let expected = format!("[0:1][2:2]={{{{\"{a}\"}},{{\"{a}\"}}}}");
    assert_eq!(array("text", "email", value), Ok(expected));
    assert_eq!(array("text", "email", "{}"), Ok("{}".to_owned()));
    assert_eq!(
        array("integer", "{algorithm: constant, value: 7}", "{1,NULL,3}"),
        Ok("{\"7\",NULL,\"7\"}".into())
    );
    assert_eq!(array("text", "'null'", "{a,b}"), Ok("{NULL,NULL}".into()));
    assert_eq!(
        array("text", "keep", r#"{"NULL","a,b","{}"}"#),
        Ok(r#"{"NULL","a,b","{}"}"#.into())
    );
}

#[test]
fn a_rule_for_elements_must_fit_them() {
    for (element, rule) in [
        ("integer", "email"),
        ("point", "character-mapping"),
        ("character varying(3)", "{algorithm: constant, value: four}"),
        ("text", "{algorithm: sql, expression: x}"),
    ] {
        let refused = array(element, rule, "{}").expect_err(rule);
        assert!(refused.starts_with("public.t.c: 'array': "), "{refused}");
    }
    for broken in ["x", "{\"a", "{a", "{\"a\\"] {
        let refused = array("text", "email", broken).expect_err(broken);
        assert_eq!(refused, "it is no array");
    }
    assert!(masked_in(TypeClass::Other, "{algorithm: array, rule: email}", "{}").is_err());
}
