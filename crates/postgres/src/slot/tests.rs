use super::*;

#[test]
fn names_have_only_letters_that_slots_may_have() {
    assert_eq!(slot_name("Shop-DB.7"), "offshoot_shop_db_7");
    assert_eq!(slot_name("ä"), "offshoot__");
    assert_eq!(slot_name(&"x".repeat(100)).len(), 63);
}

#[test]
fn a_row_tells_reserved_from_lost() {
    let row = |values: [&str; 5]| -> TextRow {
        values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect()
    };
    let reserved = row(["physical", "0/3000060", "t", "reserved", "1024"]);
    assert_eq!(
        read_state(&reserved, "s"),
        Ok(SlotState::Reserved {
            restart_lsn: Lsn(0x3000060),
            active: true,
            safe_bytes: Some(1024)
        })
    );
    let passed = row(["physical", "0/3000060", "f", "unreserved", "-5"]);
    assert_eq!(
        read_state(&passed, "s"),
        Ok(SlotState::Reserved { restart_lsn: Lsn(0x3000060), active: false, safe_bytes: Some(0) })
    );
    assert_eq!(read_state(&row(["physical", "", "f", "lost", ""]), "s"), Ok(SlotState::Lost));
    assert_eq!(
        read_state(&row(["physical", "0/3000060", "f", "lost", ""]), "s"),
        Ok(SlotState::Lost)
    );
    assert!(read_state(&row(["logical", "0/1", "f", "reserved", ""]), "s").is_err());
}
