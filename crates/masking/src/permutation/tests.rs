use super::*;
use crate::MaskingKey;
use std::collections::HashSet;

fn all(bases: &[u32]) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new()];
    for base in bases {
        let longer = |list: &Vec<u32>| {
            let list = list.clone();
            (0..*base).map(move |value| [&list[..], &[value]].concat())
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    lists
}

#[test]
fn every_list_of_digits_gets_another() {
    let permutation = Permutation::new(MaskingKey::new(b"secret").subkey("test"));
    for bases in [&[7][..], &[10, 10, 10], &[26, 10, 3], &[2, 2, 2, 2, 2, 2, 2], &[1, 9, 50]] {
        let masks: HashSet<Vec<u32>> = all(bases)
            .iter()
            .map(|list| {
                let digit = |(value, base): (&u32, &u32)| Digit { value: *value, base: *base };
                let mut digits: Vec<Digit> = list.iter().zip(bases).map(digit).collect();
                permutation.permute(1, &mut digits);
                assert!(digits.iter().all(|digit| digit.value < digit.base));
                digits.iter().map(|digit| digit.value).collect()
            })
            .collect();
        assert_eq!(masks.len(), all(bases).len(), "{bases:?}");
    }
}
