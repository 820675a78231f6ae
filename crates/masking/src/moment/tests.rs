use super::*;

fn shifted(text: &str, seconds: i64) -> String {
    let Some(Parsed::Finite(moment)) = parse(text) else { panic!("{text} is a moment") };
    let mut out = String::new();
    assert!(moment.later(seconds).write(&mut out));
    out
}

#[test]
fn every_day_of_five_thousand_years_is_read_as_written() {
    let mut number = day_number(-1000, 1, 1);
    let mut previous = (-1001, 12, 31);
    while number < day_number(4000, 1, 1) {
        let day = civil(number);
        assert!(day > previous, "{day:?} follows {previous:?}");
        assert_eq!(day_number(day.0, day.1, day.2), number);
        assert!(day.2 <= month_days(day.0, day.1));
        previous = day;
        number += 1;
    }
    assert_eq!(day_number(1970, 1, 1), 0);
    assert_eq!(day_number(2000, 3, 1), 11_017);
}

#[test]
fn forms_are_kept() {
    assert_eq!(shifted("2024-02-28", DAY_S), "2024-02-29");
    assert_eq!(shifted("2024-02-28 23:59:59.25+02", DAY_S), "2024-02-29 23:59:59.25+02");
    assert_eq!(shifted("2024-12-31T23:30Z", 3600), "2025-01-01T00:30Z");
    assert_eq!(shifted("0001-01-01", -DAY_S), "0001-12-31 BC");
    assert_eq!(shifted("0044-03-15 12:00:00 BC", DAY_S), "0044-03-16 12:00:00 BC");
    assert_eq!(shifted("9999-12-31", DAY_S), "10000-01-01");
    assert_eq!(parse("infinity"), Some(Parsed::Infinite));
}

#[test]
fn what_is_no_moment_is_refused() {
    for text in
        ["", "2024", "2024-13-01", "2023-02-29", "2024-1-1", "24-01-01", "2024-01-01 x", "é"]
    {
        assert_eq!(parse(text), None, "{text}");
    }
}
