//! Every input that is kept, and every seed, against its target.

use offshoot_fuzz::{corpus, targets};

#[test]
fn what_is_kept_is_decoded_or_refused() {
    for target in targets() {
        let kept = corpus::read(target.name).expect("it has a corpus");
        assert!(!kept.is_empty(), "{} has a corpus", target.name);
        for (number, input) in kept.iter().enumerate() {
            println!("{}, input {}: {}", target.name, number + 1, input.remark);
            (target.run)(&input.bytes);
        }
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has seeds", target.name);
        seeds.iter().for_each(|seed| (target.run)(seed));
        (target.run)(&[]);
    }
}
