import Testing

/// Messages of `#Predicate` for unsupported bodies: on the user's own line, and with what to do.
struct PredicateDiagnosticTests {
    private func messages(_ body: String) throws -> [Expansion.Message] {
        try Expansion("let predicate = #Predicate<Thing> {\n\(body)\n}").messages
    }

    @Test(arguments: [
        "$0.a == 1", "$0.a?.b?.c == 1", "if let a = $0.a { a > 1 } else { false }",
        "if let _ = $0.a { true } else { false }", "if $0.a, let b = $0.b, b.c { true } else { false }",
        "$0.a.contains { $0.b == 1 }", "$0.a.filter { $0.b }.count > 2", "$0 is Other", "($0 as? Other)?.b == 1",
        "other.evaluate($0)", "$0.a.localizedStandardContains(text)", "$0.a > 1 ? $0.b : !$0.c", "!list.contains($0.a)",
        "return $0.a == $0.b", "thing.count() == $0.a", "-$0.a < 3", "$0.a! == 1", "(1...3).contains($0.a)",
    ]) func theMacroAcceptsSupportedBodies(_ body: String) throws {
        #expect(try messages(body) == [])
    }

    @Test(arguments: [
        ("    let a = 1\n    $0.a == a", 1, "one expression"),
        ("\n    $0.a.b() == 1", 3, "b can't be part of a predicate"),
        ("\n    compute($0.a) == 1", 3, "before the predicate"),
        ("    $0.a == 1 &&\n    $0.a & 1 == 1", 3, "operator &"),
        ("    $0.a === other", 2, "operator ==="),
        ("    ~$0.a == 1", 2, "operator ~"),
        ("    $0.a[0] == 1", 2, "Compute it before"),
        ("    \"\\($0.a)\" == text", 2, "Compute it before"),
        ("    $0.a.map { $0.b } == list", 2, "map can't be part"),
        ("    if $0.a == 1 { true }", 2, "else"),
        ("    if case .b = $0.a { true } else { false }", 2, "condition can't be part"),
        ("    switch $0.a { default: true }", 2, ""),
    ]) func anUnsupportedPartIsReportedOnItsLine(_ body: String, _ line: Int, _ text: String) throws {
        let found = try messages(body)
        #expect(found.map(\.line) == [line])
        #expect(found.first?.text.contains(text) == true)
    }

    @Test func theClosureMustBeWrittenInPlace() throws {
        let found = try Expansion("let predicate = #Predicate<Thing>(body)").messages
        #expect(found.map(\.line) == [1])
        #expect(found.first?.text.contains("closure") == true)
    }
}
