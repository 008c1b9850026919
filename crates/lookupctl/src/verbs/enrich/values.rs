//! [`Values`]: what a table says, by index and field; and [`Encoded`], as the records need it.

use std::sync::OnceLock;

use wirespeed_commands::enrich;
use wirespeed_records::{Layout, TableFile};

use super::pieces::{Piece, Pieces};

/// The values of each index, a field after the other.
#[derive(Default)]
pub(super) struct Values {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
    encoded: OnceLock<Encoded>,
}

impl enrich::Values for Values {
    fn new(fields: usize) -> Self {
        Self { bytes: Vec::new(), ends: vec![0; fields], fields, encoded: OnceLock::new() }
    }

    fn add(&mut self, text: &str, file: &TableFile) {
        file.each_field(text, |value| {
            self.bytes.extend_from_slice(value.as_bytes());
            self.ends.push(self.bytes.len());
        });
    }
}

impl Values {
    /// The values as records need them, each after the separator, if there is one. The first call makes them.
    pub(super) fn encoded(&self, layout: &Layout) -> &Encoded {
        self.encoded.get_or_init(|| self.encode(layout))
    }

    fn encode(&self, layout: &Layout) -> Encoded {
        let (mut pieces, mut start, mut encoded) = (Pieces::default(), 0, Vec::new());
        for &end in &self.ends {
            let value = std::str::from_utf8(&self.bytes[start..end]).ok();
            encoded.clear();
            encoded.extend_from_slice(layout.separator().unwrap_or_default());
            layout.encoder().write(value.filter(|value| !value.is_empty()), &mut encoded);
            pieces.push(&encoded);
            start = end;
        }
        Encoded { pieces, fields: self.fields }
    }
}

/// Values as cells, or as those of members.
pub(super) struct Encoded {
    pieces: Pieces,
    fields: usize,
}

impl Encoded {
    /// A field of an index; of index 0, that there is no value.
    #[inline]
    pub(super) fn get(&self, index: u32, field: usize) -> Piece {
        self.pieces.get(index as usize * self.fields + field)
    }

    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_records::{Plan, Splitter};

    use enrich::Values as _;

    use super::super::pieces::Output;
    use super::*;

    #[test]
    fn values_by_field() {
        let mut splitter =
            Splitter::new(None, |_, _| Ok(Plan { added: vec!["c".into()], ..Plan::default() }));
        splitter.push(b"a,b\n1,2\n");
        let layout = std::iter::from_fn(|| splitter.next(true).unwrap()).find_map(|block| block.layout);
        let layout = layout.unwrap();
        let of = |text: &str, fields: &[&str]| {
            let mut values = Values::new(fields.len().max(1));
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            values
                .add(text, &TableFile { name: "t".into(), path: "x".into(), fields, ..TableFile::default() });
            let values = values.encoded(&layout);
            let get = |index, field| {
                let mut output = Output::default();
                output.piece(&values.get(index, field), values.pieces()).then(|| output.bytes().to_vec())
            };
            assert_eq!((get(0, 0), get(2, 0)), (Some(b",".to_vec()), None));
            let all = (0..values.fields).map(|field| get(1, field).unwrap());
            all.map(|bytes| String::from_utf8(bytes).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(of("a=1;b=2", &[]), [",a=1;b=2"]);
        assert_eq!(of("a=1,b=2", &[]), [",\"a=1,b=2\""]);
        assert_eq!(of("United%20States", &["country"]), [",United States"]);
        assert_eq!(
            of("asn=1,org%20name=A%2C%20B%3D\u{e9}%", &["Org name", "x", "asn"]),
            [",\"A, B=\u{e9}%\"", ",", ",1"]
        );
    }
}
