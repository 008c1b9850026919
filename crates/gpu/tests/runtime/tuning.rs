//! What is measured of ways and kernels, and that it is used.

use wirespeed_gpu::runtime::{Company, Gpu, Tuning};
use wirespeed_image::device::{Program, Programs, Sections};

use crate::common::{E, GATHER, LEN, four, image, keys, lookup_on, options, results, send, start};
use crate::fake::Fake;

#[test]
fn calibration_and_tuning_measure_and_are_used() {
    let (gpu, control) = start(15);
    let table = gpu.upload(&image(|i| i), two_programs).unwrap();
    assert!(gpu.calibration().is_none());
    let calibration = gpu.calibrate(&table, 4).unwrap();
    // 256 keys fit the slots, and 512 are the most that do. Each way was measured, unless the time was up.
    let measured = calibration.measured.iter().map(|cell| cell.count);
    assert!(measured.clone().next() == Some(256) && measured.clone().all(|count| matches!(count, 256 | 512)));
    assert!(calibration.measured.iter().all(|cell| cell.rate > 0.0 && cell.lone_us > 0.0));
    assert_eq!(gpu.calibration().as_ref(), Some(&calibration));
    let tuning = gpu.tune(&table, 4).unwrap();
    let company = [Company::Batches, Company::Nothing].repeat(2);
    assert_eq!(tuning.tuned.iter().map(|tuned| tuned.company).collect::<Vec<_>>(), company, "{tuning}");
    assert_eq!((tuning.tuned[0].class, tuning.device.as_str()), (8, "made up"));
    let right: Vec<u32> = keys(0, 900).iter().map(|key| key & (LEN - 1)).collect();
    assert_eq!(results(&send(&gpu, &table, &keys(0, 900), None).wait()), right);
    // What a file says is used: the other program from now on.
    let mut other = tuning.clone();
    for tuned in &mut other.tuned {
        tuned.ns = if tuned.kernel == "gather_w4_k4" { 1e9 } else { 1.0 };
    }
    gpu.set_tuned(&Tuning { device: "another".into(), ..other.clone() }).unwrap();
    gpu.set_tuned(&other).unwrap();
    let before = control.launched("gather_w4_k4");
    let plain = control.launched("gather_w4_plain_k4");
    let done = send(&gpu, &table, &keys(0, 900), None).wait();
    assert_eq!(results(&done), right);
    assert_eq!(control.launched("gather_w4_plain_k4"), plain + 1);
    assert_eq!(control.launched("gather_w4_k4"), before, "the other program was chosen");
    assert!(gpu.tune(&table, 8).is_err(), "there is no kernel for such keys");
    drop((gpu, table, done));
    control.check_ended();
}

#[test]
fn keys_on_the_device_get_the_launch_that_is_fastest_alone() {
    let (mut driver, control) = Fake::start(16, 1 << 24);
    let stream = driver.stream().unwrap();
    let blocks = driver.alloc(&[400, 400]).unwrap();
    let gpu = Gpu::start(driver, options()).unwrap();
    let table = gpu.upload(&image(|i| i), two_programs).unwrap();
    let mut tuning = gpu.tune(&table, 4).unwrap();
    for tuned in &mut tuning.tuned {
        let is_plain = tuned.kernel == "gather_w4_plain_k4";
        tuned.ns = if is_plain == (tuned.company == Company::Nothing) { 1.0 } else { 1e9 };
    }
    gpu.set_tuned(&tuning).unwrap();
    let launched = || ["gather_w4_k4", "gather_w4_plain_k4"].map(|kernel| control.launched(kernel));
    let [staged, plain] = launched();
    lookup_on(&gpu, &table, stream, four(blocks[0], 100), blocks[1], 400).unwrap();
    assert_eq!(launched(), [staged, plain + 1]);
    send(&gpu, &table, &keys(0, 100), None).wait();
    assert_eq!(launched(), [staged + 1, plain + 1]);
    drop((gpu, table));
    assert!(control.has_ended());
}

/// A table with a program that stages and one that doesn't.
#[expect(clippy::unnecessary_wraps, reason = "as `upload` takes it")]
fn two_programs(sections: Sections<'_>) -> Programs {
    let argument = [sections.at(E).0, u64::from(LEN - 1)];
    let staged = Program::new(GATHER, &argument, 4).with_shared(1000);
    Ok(vec![staged, Program::new(GATHER.word("plain"), &argument, 4)])
}
