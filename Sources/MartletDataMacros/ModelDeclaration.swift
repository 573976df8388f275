import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// Checks a model's class, and generates the members that `@Model` adds.
struct ModelDeclaration {
    let model: ClassDeclSyntax
    let isRoot: Bool
    let properties: [StoredProperty]

    init(_ model: ClassDeclSyntax, isRoot: Bool) {
        self.model = model
        self.isRoot = isRoot
        properties = ModelMacro.persisted(model.memberBlock.members)
    }

    private var name: String { model.name.text }
    private var isFinal: Bool { model.modifiers.contains { $0.name.tokenKind == .keyword(.final) } }
    /// The superclass, if this isn't the root of its hierarchy: Swift requires it to come first.
    private var superclass: String { model.inheritanceClause?.inheritedTypes.first?.type.trimmedDescription ?? "" }

    private var access: String { model.modifiers.memberAccess }

    // MARK: Checking

    func check(in context: some MacroExpansionContext) -> Bool {
        var isSound = true
        func problem(_ message: String, at node: some SyntaxProtocol) {
            context.report(message, at: node)
            isSound = false
        }
        if model.genericParameterClause != nil {
            problem("A model can't be generic: its table has one shape.", at: model.name)
        }
        for item in model.memberBlock.members {
            if let variable = item.decl.as(VariableDeclSyntax.self) {
                for message in problems(variable) { problem(message, at: variable) }
            }
            guard let condition = item.decl.as(IfConfigDeclSyntax.self) else { continue }
            // A macro isn't told which part of #if is compiled.
            for member in Self.members(of: condition) {
                if let variable = member.as(VariableDeclSyntax.self) {
                    for message in conditionalProblems(variable) { problem(message, at: variable) }
                } else if let macro = member.as(MacroExpansionDeclSyntax.self) {
                    switch macro.macroName.text {
                    case "Unique": problem("#Unique has no effect in #if: move it out.", at: macro)
                    case "Index": context.warn("#Index has no effect in #if: move it out.", at: macro)
                    default: break
                    }
                }
            }
        }
        for property in properties where property.hasObservers {
            context.warn(
                "willSet and didSet of a model's stored property aren't called: @Model replaces its accessors.",
                at: property.declaration)
        }
        return isSound
    }

    /// The members in all parts of a `#if`, also in nested ones.
    private static func members(of condition: IfConfigDeclSyntax) -> [DeclSyntax] {
        var found: [DeclSyntax] = []
        for clause in condition.clauses {
            guard case .decls(let items) = clause.elements else { continue }
            for item in items {
                if let nested = item.decl.as(IfConfigDeclSyntax.self) {
                    found += members(of: nested)
                } else {
                    found.append(item.decl)
                }
            }
        }
        return found
    }

    private func conditionalProblems(_ variable: VariableDeclSyntax) -> [String] {
        let found = problems(variable)
        guard found.isEmpty, let property = StoredProperty(variable), !property.isTransient else { return found }
        return ["A property in #if isn't stored: move it out, or mark it @Transient."]
    }

    private func problems(_ variable: VariableDeclSyntax) -> [String] {
        let isType = variable.modifiers.contains {
            [.keyword(.static), .keyword(.class)].contains($0.name.tokenKind)
        }
        guard !isType else { return [] }
        let isTuple = variable.bindings.first?.pattern.is(TuplePatternSyntax.self) ?? false
        if variable.bindings.count > 1 || (isTuple && variable.bindingSpecifier.tokenKind == .keyword(.var)) {
            return ["Declare each property of a model separately."]
        }
        guard let property = StoredProperty(variable) else { return [] }
        if property.isTransient {
            let isOptional =
                property.type.map {
                    $0.is(OptionalTypeSyntax.self) || $0.is(ImplicitlyUnwrappedOptionalTypeSyntax.self)
                } ?? false
            guard property.initializer != nil || isOptional else {
                return ["A transient property isn't stored: give it a default value, which fetched models get."]
            }
            return []
        }
        if let type = property.type, let name = UnstorableType.name(type) {
            return ["\(name) can't be stored: use a type that is Codable, or mark the property @Transient."]
        }
        return []
    }

    // MARK: Writing

    func members(in context: some MacroExpansionContext) throws -> [DeclSyntax] {
        let typeMember = isFinal ? "static" : "class"
        let override = isRoot ? "" : "override "
        let metadata: DeclSyntax =
            """
            \(raw: access)\(raw: override)\(raw: typeMember) var schemaMetadata: [MartletData.Schema.PropertyMetadata] {
                _$properties(for: \(raw: name).self)
            }
            """
        let generic = isFinal ? "" : "<M: \(name)>"
        let metatype = isFinal ? "\(name).Type" : "M.Type"
        let inherited = isRoot ? "" : "\(superclass)._$properties(for: model) + "
        let root = isFinal ? name : "M"
        let list = properties.enumerated().map { "    " + entry($1, slot: $0, root: root) }.joined(separator: ",\n")
        let properties: DeclSyntax =
            """
            \(raw: access)\(raw: typeMember) func _$properties\(raw: generic)(for model: \(raw: metatype)) \
            -> [MartletData.Schema.PropertyMetadata] {
                \(raw: inherited)[
                \(raw: list)
                ]
            }
            """
        let constraints = try ConstraintReader(model).constraints(in: context)
        let base = isRoot ? "" : "super._$constraints + "
        let constraintMember: DeclSyntax =
            """
            \(raw: access)\(raw: override)\(raw: typeMember) var _$constraints: [MartletData.Schema.Constraint] {
                \(raw: base)[\(raw: constraints.joined(separator: ", "))]
            }
            """
        return (isRoot ? rootMembers(typeMember) : subclassMembers(typeMember))
            + [metadata, properties, constraintMember, initializer]
    }

    private func rootMembers(_ typeMember: String) -> [DeclSyntax] {
        [
            """
            \(raw: access)var _$observationRegistrar: Observation.ObservationRegistrar \
            { _$backing.observationRegistrar }
            """,
            """
            \(raw: access)var _$backing: MartletData.ModelBacking {
                get { _$backingData.initial }
                set { _$backingData = .init(newValue) }
            }
            """,
            "private var _$backingData = MartletData.ModelStorage<\(raw: name)>()",
            "private typealias _SwiftDataNoType = MartletData.PersistedProperty",
            "private static var _$firstSlot: Int { 0 }",
            "private func _$adopt() {}",
            "\(raw: access)\(raw: typeMember) var _$slotCount: Int { \(raw: properties.count) }",
            "\(raw: access)func _$adoptInitialValues() {}",
        ]
    }

    private func subclassMembers(_ typeMember: String) -> [DeclSyntax] {
        [
            "private var _$backingData = MartletData.InitialStorage<\(raw: name)>()",
            "private typealias _SwiftDataNoType = MartletData.PersistedProperty",
            "private static let _$firstSlot = \(raw: superclass)._$slotCount",
            """
            \(raw: access)override \(raw: typeMember) var _$slotCount: Int { _$firstSlot + \(raw: properties.count) }
            """,
            """
            private func _$adopt() {
                _$backingData.initial.move(to: _$backing, from: Self._$firstSlot)
            }
            """,
            """
            \(raw: access)override func _$adoptInitialValues() {
                super._$adoptInitialValues()
                _$adopt()
            }
            """,
        ]
    }

    private var initializer: DeclSyntax {
        let marks = properties.map { "    _\($0.schemaName) = .init()" }.joined(separator: "\n")
        return isRoot
            ? """
            \(raw: access)required init(_$backing backing: MartletData.ModelBacking) {
            \(raw: marks)
                _$backingData = .init(backing)
            }
            """
            : """
            \(raw: access)required init(_$backing backing: MartletData.ModelBacking) {
            \(raw: marks)
                super.init(_$backing: backing)
                _$backingData = .init()
            }
            """
    }

    private func entry(_ property: StoredProperty, slot: Int, root: String) -> String {
        var arguments = [
            "\"\(property.schemaName)\"", "\\\(root).\(property.name)",
        ]
        if property.isRelationship {
            arguments.append("MartletData.Schema.Relationship(\(property.relationship?.trimmedDescription ?? ""))")
        } else if let attribute = property.attribute {
            arguments.append("MartletData.Schema.Attribute(\(attribute.trimmedDescription))")
        }
        if let value = property.initializer {
            arguments.append("default: { \(value.trimmedDescription) }")
        }
        if let transformer = property.transformer {
            return """
                MartletData.Schema._transformedProperty(\(arguments.joined(separator: ", ")), by: \
                .init(\(transformer)))
                """
        }
        return "MartletData.Schema._property(\(arguments.joined(separator: ", ")))"
    }
}
