//! Lists targets, unpacks and packs their corpora and replays inputs. `scripts/fuzz.sh` finds new ones.

use anyhow::{Context, Result, bail};
use offshoot_fuzz::{Target, corpus, targets};
use std::path::Path;

const USAGE: &str = "list | unpack TARGET DIR | pack TARGET DIR | replay TARGET FILE…";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["list"] => targets().for_each(|target| println!("{}", target.name)),
        ["unpack", name, dir] => {
            let kept = corpus::read(name)?.into_iter().map(|kept| kept.bytes);
            for (number, input) in (find(name)?.seeds)().into_iter().chain(kept).enumerate() {
                std::fs::write(Path::new(dir).join(format!("known-{number}")), input)?;
            }
        }
        ["pack", name, dir] => {
            let files = std::fs::read_dir(dir)?.map(|file| std::fs::read(file?.path()));
            corpus::write(find(name)?.name, files.collect::<Result<_, _>>()?)?;
        }
        ["replay", name, files @ ..] => {
            let target = find(name)?;
            for file in files {
                println!("{file}");
                (target.run)(&std::fs::read(file).context("the input cannot be read")?);
            }
        }
        _ => bail!("usage: offshoot-fuzz {USAGE}"),
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Target> {
    targets().find(|target| target.name == name).with_context(|| format!("no target {name}"))
}
