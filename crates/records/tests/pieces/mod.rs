//! A stream of records cut into pieces of any size: all give the same bytes, and every record is where it
//! says.

use wirespeed_records::{Block, Content, Error, Format, Plan, Records, Splitter};

/// Adds a column to the records of a stream, in pieces of a size that the first byte gives and all at once.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&size, bytes)) = bytes.split_first() else { return };
    for format in Format::ALL.map(Some).into_iter().chain([None]) {
        let whole = with_column(format, bytes, bytes.len().max(1));
        let pieces = with_column(format, bytes, usize::from(size).max(1));
        // An error comes after the blocks before it, of whatever size they are.
        assert_eq!(whole, pieces);
    }
}

/// The bytes with a new column, and the error that ended them.
fn with_column(format: Option<Format>, bytes: &[u8], piece: usize) -> (Vec<u8>, Option<Error>) {
    let plan = |_: Format, names: &[String]| {
        let ends = [names.first(), names.last()].into_iter().flatten();
        let wanted = if names.is_empty() { vec!["a".to_owned()] } else { ends.cloned().collect() };
        Ok(Plan { wanted, added: vec!["a new column".to_owned()], ..Plan::default() })
    };
    let (mut splitter, mut out) = (Splitter::new(format, plan), Vec::new());
    for piece in bytes.chunks(piece) {
        splitter.push(piece);
        if let Err(error) = drain(&mut splitter, false, &mut out) {
            return (out, Some(error));
        }
    }
    let error = drain(&mut splitter, true, &mut out).err();
    (out, error)
}

fn drain<P: FnMut(Format, &[String]) -> Result<Plan, String>>(
    splitter: &mut Splitter<P>,
    ends: bool,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    while let Some(Block { bytes, layout }) = splitter.next(ends)? {
        let Some(layout) = layout else {
            out.extend_from_slice(&bytes);
            continue;
        };
        let (mut records, mut at) = (Records::default(), 0);
        layout.scan(&bytes, &mut records);
        for (number, record) in records.records().iter().enumerate() {
            assert!(record.start == at && record.start <= record.insert && record.insert <= record.end);
            at = record.end;
            out.extend_from_slice(&bytes[record.start..record.insert]);
            if let Content::Whole { is_bare } = record.content {
                out.extend_from_slice(layout.lead(0, is_bare));
                let cell = String::from_utf8_lossy(records.cell(&bytes, number, 0)).into_owned();
                layout.encoder().write(Some(&cell), out);
            }
            out.extend_from_slice(&bytes[record.insert..record.end]);
        }
        assert_eq!(at, bytes.len());
    }
    Ok(())
}
