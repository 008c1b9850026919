#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_esp::Database;
use wirespeed_esp::read::Lines;

// Lines of `ip xfrm`: what is read can be applied, or is refused with an error.
fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let lines = Lines::read(&text);
    if let Ok(mut database) = Database::new() {
        for change in lines.changes {
            let _ = database.apply([change]);
        }
    }
});
