//! [`Former`]: converts words to names.

use super::format::NameFormat;
use super::host::domain;
use super::reason::NameReason;
use super::url;
use crate::name::{Name, NameBuf};
use crate::tlv::WireNameBuf;

/// Converts words to names, millions of them in the same memory.
///
/// ```
/// use wirespeed_namelookup::read::{Former, NameFormat};
///
/// let mut former = Former::default();
/// for (domain, name) in [("www.parc.com", "/com/parc/www"), ("Parc.Com.", "/com/parc"), ("M\u{dc}NCHEN.de", "/de/xn--mnchen-3ya"), (".", "/")] {
///     assert_eq!(former.form(domain.as_bytes(), NameFormat::Domains)?.to_string(), name);
/// }
/// # Ok::<(), wirespeed_namelookup::read::NameReason>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Former {
    text: Vec<u8>,
}

impl Former {
    /// Converts a word to a name. O(length).
    pub fn form<'f>(&'f mut self, word: &'f [u8], format: NameFormat) -> Result<&'f Name, NameReason> {
        self.text.clear();
        match format {
            NameFormat::Names => return Ok(Name::new(word)?),
            NameFormat::Domains => domain(word, &mut self.text)?,
            NameFormat::Urls => url::append(word, &mut self.text)?,
            NameFormat::Ndn => WireNameBuf::from_uri(word)?.as_wire().append_text(&mut self.text),
        }
        self.checked()
    }

    /// Converts the path of a URL to a name, without its host. A word in another form is converted whole.
    pub(super) fn path<'f>(&'f mut self, word: &'f [u8], format: NameFormat) -> Result<&'f Name, NameReason> {
        if format != NameFormat::Urls {
            return self.form(word, format);
        }
        self.text.clear();
        url::append_path(word, &mut self.text)?;
        self.checked()
    }

    fn checked(&self) -> Result<&Name, NameReason> {
        if self.text.len() > Name::MAX_LEN {
            let (found, limit) = (self.text.len(), Name::MAX_LEN);
            return Err(crate::name::NameError::TooLong { found, limit }.into());
        }
        Ok(Name::new_unchecked(&self.text))
    }
}

impl NameFormat {
    /// Parses a name in this form.
    ///
    /// ```
    /// use wirespeed_namelookup::read::NameFormat;
    ///
    /// let text = b"http://me@WWW.parc.com:80/a%20b/c?d=e/f#g";
    /// assert_eq!(NameFormat::Urls.parse(text)?.to_string(), "/com/parc/www/=a%20b/c?d=e%2Ff");
    /// assert_eq!(NameFormat::Domains.parse(b"*.parc.com")?.to_string(), "/com/parc");
    /// # Ok::<(), wirespeed_namelookup::read::NameReason>(())
    /// ```
    pub fn parse(self, text: &[u8]) -> Result<NameBuf, NameReason> {
        Former::default().form(text, self).map(ToOwned::to_owned)
    }
}
