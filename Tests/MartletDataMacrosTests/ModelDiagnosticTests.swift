import Testing

/// Messages of `@Model` for classes that can't be models: on the user's own line, and with what to do.
struct ModelDiagnosticTests {
    /// The only message for a class with this body, which begins on line 3.
    private func diagnostic(_ body: String, _ head: String = "@Model\nfinal class Thing {") throws -> Expansion.Message?
    {
        let expansion = try Expansion("\(head)\n\(body)\n}")
        #expect(expansion.messages.count <= 1)
        return expansion.messages.first
    }

    @Test func aValidModelHasNoMessage() throws {
        let expansion = try Expansion(
            """
            @Model
            final class Thing {
                #Unique<Thing>([\\.name])
                var name: String
                @Attribute(.unique) var code = 1
                @Relationship(deleteRule: .cascade) var parts: [Part] = []
                @Transient var note = ""
                static let version = 1
                let constant = 2
                var computed: Int { 1 }
                lazy var late = 3
                init(name: String) { self.name = name }
            }
            """)
        #expect(expansion.messages == [])
        #expect(expansion.source.contains("MartletData.PersistentModel"))
        for name in ["name", "code", "parts"] { #expect(expansion.source.contains("_property(\"\(name)\"")) }
        for name in ["note", "version", "constant", "computed", "late"] {
            #expect(!expansion.source.contains("_property(\"\(name)\""))
        }
    }

    @Test(arguments: ["struct", "enum", "actor"]) func onlyClassesAreModels(_ kind: String) throws {
        let message = try #require(try diagnostic("", "@Model\n\(kind) Thing {"))
        #expect(message.line == 1)
        #expect(message.text.contains("class"))
    }

    @Test func aGenericClassIsRefusedAtItsName() throws {
        let message = try #require(try diagnostic("", "@Model\nfinal class Thing<T> {"))
        #expect(message.line == 2)
        #expect(message.text.contains("generic"))
    }

    @Test(arguments: ["Base", "@unchecked Sendable", "Swift.Identifiable", "Base & Other"])
    func theMacroLeavesTheHeaderToTheCompiler(_ type: String) throws {
        let expansion = try Expansion("@Model\nfinal class Thing: \(type) {\n    var a = 1\n}")
        #expect(expansion.messages == [])
        #expect(expansion.source.contains("_ModelRoot"))
        #expect(!expansion.source.contains("override"))
    }

    @Test func aConstantWithoutAValueIsStored() throws {
        let expansion = try Expansion("@Model\nfinal class Thing {\n    let b: Int\n    let c = 1\n}")
        #expect(expansion.messages == [])
        #expect(expansion.source.contains("_property(\"b\""))
        #expect(!expansion.source.contains("_property(\"c\""))
        #expect(!expansion.source.contains("set {\n            _$adopt()"))
    }

    @Test func propertiesMustBeDeclaredSeparately() throws {
        let message = try #require(try diagnostic("    var a = 1, b = 2"))
        #expect(message.line == 3)
        #expect(message.text.contains("separately"))
    }

    @Test func aTupleOfPropertiesIsRefused() throws {
        let message = try #require(try diagnostic("    var (a, b) = (1, 2)"))
        #expect(message.line == 3)
        #expect(message.text.contains("separately"))
        #expect(try diagnostic("    let (a, b) = (1, 2)") == nil)
    }

    @Test(arguments: ["var b = 2", "let b: Int", "#if os(Linux)\n    var b = 2\n    #endif"])
    func aStoredPropertyInAConditionIsRefused(_ property: String) throws {
        let message = try #require(try diagnostic("    var a = 1\n    #if DEBUG\n    \(property)\n    #endif"))
        #expect(message.line == (property.hasPrefix("#if") ? 6 : 5))
        #expect(message.isError)
        #expect(message.text.contains("@Transient"))
    }

    @Test(arguments: ["@Transient var b = 2", "var b: Int { 2 }", "func b() {}", "static let b = 2"])
    func otherMembersMayBeInACondition(_ member: String) throws {
        #expect(try diagnostic("    var a = 1\n    #if DEBUG\n    \(member)\n    #endif") == nil)
    }

    @Test(arguments: ["Unique", "Index"]) func aConstraintInAConditionIsReported(_ kind: String) throws {
        let body = "    var a = 1\n    #if DEBUG\n    #\(kind)<Thing>([\\.a])\n    #endif"
        let message = try #require(try diagnostic(body))
        #expect(message.line == 5)
        #expect(message.isError == (kind == "Unique"))
        #expect(message.text.contains(kind))
    }

    @Test func aTransientPropertyNeedsADefault() throws {
        let message = try #require(try diagnostic("    @Transient var a: Int"))
        #expect(message.line == 3)
        #expect(message.text.contains("default"))
        #expect(try diagnostic("    @Transient var a: Int?") == nil)
        #expect(try diagnostic("    @Transient var a: Int!") == nil)
    }

    @Test(arguments: ["willSet", "didSet"]) func propertyObserversGetAWarning(_ kind: String) throws {
        let message = try #require(try diagnostic("    var a = 1 {\n        \(kind) { print(1) }\n    }"))
        #expect(message.line == 3)
        #expect(message.text.contains("didSet"))
        #expect(!message.isError)
    }

    @Test(arguments: [
        "() -> Void", "(@Sendable (Int) -> Int)?", "(Int, String)", "[(Int) -> Int]", "any Thing", "Any", "AnyObject?",
    ])
    func unstorableTypesAreRefusedAtTheirProperty(_ type: String) throws {
        let message = try #require(try diagnostic("    var a = 1\n\n    var b: \(type)"))
        #expect(message.line == 5)
        #expect(message.text.contains("@Transient"))
        #expect(message.text.contains("Codable"))
        #expect(try diagnostic("    @Transient var b: (\(type))? = nil") == nil)
    }

    @Test func indexesAcceptOnlyKnownKinds() throws {
        let body = "    var a = 1\n    #Index<Thing>"
        #expect(try diagnostic(body + "(.binary([\\.a]), .rtree([\\.a]))") == nil)
        #expect(try diagnostic(body + "(Schema.Index<Thing>.Types<Thing>.binary([\\.a]))") == nil)
        #expect(try #require(try diagnostic(body + "(.hash([\\.a]))")).text.contains("list"))
        #expect(
            try #require(try diagnostic("    var a = 1\n    #Unique<Thing>(.binary([\\.a]))")).text.contains("list"))
    }

    @Test(arguments: ["Unique", "Index"]) func constraintsAcceptOnlyListsOfKeyPathsOfTheModel(_ kind: String) throws {
        let body = "    var a = 1\n    #\(kind)<Thing>"
        #expect(try diagnostic(body + "([\\.a])") == nil)
        let noList = try #require(try diagnostic(body + "(\\.a)"))
        #expect(noList.line == 4)
        #expect(noList.text.contains("list"))
        let through = try #require(try diagnostic(body + "([\\.a.b])"))
        #expect(through.line == 4)
        #expect(through.text.contains("property of the model itself"))
        let text = try #require(try diagnostic(body + "([\"a\"])"))
        #expect(text.line == 4)
    }

    @Test(arguments: [
        "@Transient func a() {}", "@Attribute init() {}", "@Relationship(deleteRule: .cascade) struct A {}",
    ])
    func aMarkerOnAnotherMemberGetsAWarning(_ member: String) throws {
        let message = try #require(try diagnostic("    \(member)"))
        #expect(message.line == 3)
        #expect(!message.isError)
        #expect(message.text.contains("stored property"))
    }

    @Test func modelActorIsRefusedOnAClass() throws {
        let message = try #require(try diagnostic("", "@ModelActor\nfinal class Thing {"))
        #expect(message.line == 1)
        #expect(message.text.contains("actor"))
    }
}
