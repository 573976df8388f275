import Foundation
import Testing

/// Runs the inputs that fuzzing has found, without the fuzzer: a trap ends the run.
@Suite struct CorpusTests {
    private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../Corpus")

    @Test(arguments: FuzzTargets.names) func everyTargetSurvivesTheInputsOfItsCorpus(name: String) throws {
        let target = try #require(try FuzzTargets.make(name))
        let inputs = try FileManager.default.contentsOfDirectory(
            at: Self.corpus.appendingPathComponent(name), includingPropertiesForKeys: nil)
        #expect(inputs.count > 50)
        for input in inputs { target.run([UInt8](try Data(contentsOf: input))) }
    }

    @Test func everyFolderOfTheCorpusHasATarget() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
        #expect(Set(folders) == Set(FuzzTargets.names))
    }
}
