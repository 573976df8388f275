import ArgumentParser
import CBaseline
import Foundation
import MartletStore

/// SQLite's settings, the same for the baseline and for Martlet.
enum Settings: String, CaseIterable, ExpressibleByArgument {
    /// The defaults of `StoreConfiguration`.
    case martlet
    /// `secure_delete` on and a checkpoint every 1,000 pages, with a cache that holds everything.
    case debian

    var store: StoreConfiguration {
        var configuration = StoreConfiguration()
        if self == .debian {
            configuration.secureDelete = true
            configuration.walAutocheckpointPages = 1000
            configuration.cacheKiB = 65_536
        }
        return configuration
    }

    var baseline: baseline_settings {
        let store = store
        return baseline_settings(
            cache_kib: Int32(store.cacheKiB), secure_delete: store.secureDelete ? 1 : 0,
            autocheckpoint_pages: Int32(store.walAutocheckpointPages))
    }
}

/// State that all benchmarks of a run share. Confined to the main thread.
final class Run {
    let isQuick: Bool
    let repetitions: Int
    let settings: Settings
    let keyings: [Keying]
    let report: Report
    /// Elapsed time, or this process's processor time.
    let clock: clockid_t
    private let folder: URL
    private var fileCount = 0

    init(
        isQuick: Bool, repetitions: Int, settings: Settings, keyings: [Keying], directory: String, clock: clockid_t,
        report: Report
    ) throws {
        self.clock = clock
        baseline_set_clock(clock)
        self.isQuick = isQuick
        self.repetitions = repetitions
        self.settings = settings
        self.keyings = keyings
        self.report = report
        folder = URL(fileURLWithPath: directory).appendingPathComponent("martlet-benchmarks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    func cleanUp() { try? FileManager.default.removeItem(at: folder) }

    /// Returns a path for a new file.
    func newFile() -> String {
        fileCount += 1
        return folder.appendingPathComponent("\(fileCount).sqlite").path
    }

    /// Removes a database and SQLite's files beside it.
    func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

func seconds(_ body: () throws -> Void) rethrows -> Double {
    let start = ContinuousClock.now
    try body()
    return (ContinuousClock.now - start) / .seconds(1)
}

/// Like ``seconds(_:)``, but uses the clock of the run.
func seconds(_ run: Run, _ body: () throws -> Void) rethrows -> Double {
    func now() -> Double {
        var time = timespec()
        clock_gettime(run.clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    let start = now()
    try body()
    return now() - start
}

/// Returns a measurement made in C. A negative one is an error, whose reason C has printed.
func checked(_ seconds: Double) throws -> Double {
    guard seconds >= 0 else { throw Failure("The baseline failed.") }
    return seconds
}

func median(_ values: [Double]) -> Double { percentile(values, 0.5) }

/// Uses the nearest rank.
func percentile(_ values: [Double], _ part: Double) -> Double {
    guard !values.isEmpty else { return .nan }
    let sorted = values.sorted()
    return sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
}

/// Runs each variant once in every repetition, in a different order each time, and returns the results by variant.
func interleaved(_ repetitions: Int, _ variants: [() throws -> Double]) throws -> [[Double]] {
    var results = variants.map { _ in [Double]() }
    for repetition in 0..<repetitions {
        for place in variants.indices {
            let index = (place + repetition) % variants.count
            results[index].append(try variants[index]())
        }
    }
    return results
}
