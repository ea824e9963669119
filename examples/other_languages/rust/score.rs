// Score rows with librankcore from Rust.
//
//     rustc -O -L FOLDER_OF_THE_LIBRARY -l rankcore score.rs
//     ./score MODEL < rows.svm

use std::ffi::{c_char, CStr, CString};
use std::io::BufRead;
use std::ptr::null_mut;

#[repr(C)]
struct Handle {
    private: [u8; 0],
}

#[rustfmt::skip]
extern "C" {
    fn rankcore_open(path: *const c_char, error: *mut c_char, size: usize) -> *mut Handle;
    fn rankcore_close(model: *mut Handle);
    fn rankcore_n_ranks(model: *const Handle) -> i32;
    fn rankcore_label(model: *const Handle, rank: i32, label: *mut c_char, size: usize) -> i64;
    fn rankcore_csr(model: *const Handle, values: *const f64, columns: *const i32,
        offsets: *const i64, n_rows: i64, scores: *mut f64, ranks: *mut i32) -> i32;
    fn rankcore_csr_probabilities(model: *const Handle, values: *const f64, columns: *const i32,
        offsets: *const i64, n_rows: i64, probabilities: *mut f64) -> i32;
    fn rankcore_message(code: i32) -> *const c_char;
}

const UNSUPPORTED: i32 = 4;

/// An open model. The library never writes to one, so threads may share it.
struct Model(*mut Handle);
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { rankcore_close(self.0) }
    }
}

fn text(buffer: &[u8]) -> String {
    CStr::from_bytes_until_nul(buffer).map_or(String::new(), |s| s.to_string_lossy().into_owned())
}

fn check(code: i32) -> Result<(), String> {
    let words = unsafe { CStr::from_ptr(rankcore_message(code)) };
    if code == 0 { Ok(()) } else { Err(words.to_string_lossy().into_owned()) }
}

impl Model {
    fn open(path: &str) -> Result<Model, String> {
        let name = CString::new(path).map_err(|e| e.to_string())?;
        let mut error = [0u8; 200];
        let found = unsafe { rankcore_open(name.as_ptr(), error.as_mut_ptr().cast(), error.len()) };
        if found.is_null() { Err(format!("{path}: {}", text(&error))) } else { Ok(Model(found)) }
    }

    fn label(&self, rank: i32) -> String {
        let mut label = [0u8; 200];
        unsafe { rankcore_label(self.0, rank, label.as_mut_ptr().cast(), label.len()) };
        text(&label)
    }
}

fn run() -> Result<(), String> {
    let model = Model::open(&std::env::args().nth(1).ok_or("usage: score MODEL < rows.svm")?)?;
    let (mut values, mut columns, mut offsets) = (Vec::<f64>::new(), Vec::<i32>::new(), vec![0i64]);
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let mut items = line.split('#').next().unwrap_or("").split_whitespace();
        if items.next().is_none() {
            continue; // a blank line, or a comment; else that was the label
        }
        for (name, value) in items.filter_map(|item| item.split_once(':')).filter(|i| i.0 != "qid") {
            columns.push(name.parse::<i32>().map_err(|_| format!("{name} is no column"))? - 1);
            values.push(value.parse().map_err(|_| format!("{value} is no number"))?);
        }
        offsets.push(values.len() as i64);
    }
    let (n, k) = (offsets.len() - 1, unsafe { rankcore_n_ranks(model.0) } as usize);
    let (mut scores, mut ranks, mut table) = (vec![0.0; n], vec![0; n], vec![0.0; n * k]);
    let (v, c, o) = (values.as_ptr(), columns.as_ptr(), offsets.as_ptr());
    let to = if k > 0 { ranks.as_mut_ptr() } else { null_mut() };
    let code = unsafe { rankcore_csr(model.0, v, c, o, n as i64, scores.as_mut_ptr(), to) };
    check(code)?;
    let code = unsafe { rankcore_csr_probabilities(model.0, v, c, o, n as i64, table.as_mut_ptr()) };
    check(if code == UNSUPPORTED { 0 } else { code })?; // not every model has probabilities
    for i in 0..n {
        let label = if k > 0 { model.label(ranks[i]) } else { "-".to_string() };
        print!("{} {label}", scores[i]);
        table[i * k..(i + 1) * k].iter().filter(|_| code == 0).for_each(|p| print!(" {p}"));
        println!();
    }
    Ok(())
}

fn main() {
    run().unwrap_or_else(|error| { eprintln!("{error}"); std::process::exit(1) });
}
