//! [`Record`]: the folder where figures go, of a GPU or of a machine without one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use wirespeed_gpu::driver::{Properties, devices};

use super::plot::{Plot, svg};
use crate::machine::Machine;
use crate::report::{self, Sheet};

/// The folder where figures go, with what is in every file's name.
#[derive(Debug)]
pub struct Record {
    machine: Machine,
    directory: PathBuf,
    description: String,
    kind: String,
    is_dry: bool,
}

impl Record {
    /// Takes the folder of this GPU, or else of this machine, below `out`, and says on stderr what it is.
    /// Names of files have the date, then the kind, if it is not empty, then the figure. A dry record prints
    /// figures and writes none.
    pub fn new(out: &Path, kind: &str, gpu: Option<&Properties>, is_dry: bool) -> Self {
        let machine = Machine::here();
        let (slug, description) = match gpu {
            Some(gpu) => {
                let gpus = devices().map_or(1, |devices| devices.len());
                (super::slug(gpu), super::describe(gpu, gpus, &machine))
            }
            None => (machine.slug(), machine.describe()),
        };
        eprint!("{description}");
        Self { directory: out.join(slug), machine, description, kind: kind.to_owned(), is_dry }
    }

    /// Prints a figure and writes it.
    pub fn show(&self, name: &str, sheet: &Sheet, plots: &[Plot]) -> Result<()> {
        println!("{sheet}");
        self.write(name, sheet, plots)
    }

    /// Writes a figure and its plots. The first plot has the figure's name, and the others end in what they
    /// show.
    pub fn write(&self, name: &str, sheet: &Sheet, plots: &[Plot]) -> Result<()> {
        if self.is_dry || sheet.rows.is_empty() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.directory)?;
        std::fs::write(self.directory.join("machine.txt"), &self.description)?;
        let date = report::date();
        let words = [&*date, &self.kind, name];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let path = self.directory.join(words.join("-"));
        let path = path.display();
        std::fs::write(format!("{path}.csv"), sheet.csv(&self.machine))?;
        for (at, plot) in plots.iter().enumerate() {
            let ending = if at == 0 { String::new() } else { format!("-{}", plot.y.replace('_', "-")) };
            match svg(sheet, plot) {
                Ok(picture) => std::fs::write(format!("{path}{ending}.svg"), picture)?,
                Err(why) => eprintln!("{name}: no picture: {why}"),
            }
        }
        eprintln!("written to {path}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn figures_and_their_plots_are_files_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let rows = [["cpu", "1", "2", "3"], ["cpu", "2", "3", "-"]];
        let rows = rows.iter().map(|row| row.map(str::to_owned).into()).collect();
        let sheet = Sheet { title: "Rates".into(), columns: &["way", "keys", "rate", "cost_s"], rows };
        let on_y = |y| Plot { x: "keys", y, curves: &["way"], ..Plot::NONE };
        let plots = [on_y("rate"), on_y("cost_s")];
        for is_dry in [true, false] {
            let record = Record::new(dir.path(), "kind", None, is_dry);
            record.show("figure", &sheet, &plots).unwrap();
            record.show("empty", &Sheet { rows: Vec::new(), ..sheet.clone() }, &plots).unwrap();
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), usize::from(!is_dry));
        }
        let folder = dir.path().join(Machine::here().slug());
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        files.sort();
        // One point is no curve.
        let name = format!("{}-kind-figure", report::date());
        assert_eq!(
            files,
            [format!("{name}.csv"), format!("{name}.svg"), "machine.txt".into()].map(OsString::from)
        );
    }
}
