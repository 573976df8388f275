/// What a generated schema, and the statements on it, can have. Each can be switched off by its name.
public enum SchemaFeature: String, Sendable, CaseIterable, Comparable {
    // Tables and their keys.
    case withoutRowID = "without-rowid"
    case strict
    /// Keys of one column of any type, which name the row everywhere.
    case naturalKeys = "natural-keys"
    case compositeKeys = "composite-keys"
    /// An integer key, and a unique column that is declared to be the identity.
    case declaredIdentities = "declared-identities"
    /// An integer key that is a foreign key.
    case keyReferences = "key-references"
    case autoincrement
    /// Keys of which a column is REAL.
    case realKeys = "real-keys"
    /// Natural keys that may be NULL.
    case nullKeys = "null-keys"

    // Columns.
    case affinities
    case collations
    case defaults
    case notNull = "not-null"
    case generatedColumns = "generated-columns"
    case checks
    /// CHECKs that read several columns.
    case rowChecks = "row-checks"

    // Unique keys and indexes.
    case uniqueColumns = "unique-columns"
    case compositeUnique = "composite-unique"
    case expressionIndexes = "expression-indexes"
    case partialIndexes = "partial-indexes"
    case plainIndexes = "plain-indexes"
    /// `ON CONFLICT` in the schema.
    case conflictClauses = "conflict-clauses"

    // References.
    case references
    case compositeReferences = "composite-references"
    /// References to unique columns that are not the identity.
    case uniqueReferences = "unique-references"
    case selfReferences = "self-references"
    /// References of a table to itself that may not be NULL: the first row refers to itself.
    case neededSelves = "needed-selves"
    case cyclicReferences = "cyclic-references"
    /// References of several columns, some of them NULL, whose others refer to nothing.
    case danglingParts = "dangling-parts"
    /// `ON DELETE` and `ON UPDATE`.
    case actions
    case deferred

    // Beside tables.
    /// Triggers that write to tracked tables, or refuse.
    case triggers
    /// Full-text indexes that triggers keep.
    case fullText = "full-text"
    /// R-Trees that triggers keep.
    case rtree
    /// Counters that triggers keep in a table that is not tracked.
    case counters
    /// Columns that are added and renamed, and tables and indexes that are made, on each node at another time.
    case alters

    // Statements.
    case multipleRows = "multiple-rows"
    case upserts
    /// `OR REPLACE`.
    case replace
    /// `OR REPLACE` where an index on an expression may be what displaces a row.
    case expressionReplace = "expression-replace"
    /// `OR IGNORE`, `OR FAIL`, `OR ABORT` and `OR ROLLBACK`.
    case resolutions
    /// `OR REPLACE` of rows that others refer to without an action.
    case replacedTargets = "replaced-targets"
    /// Rows that go, or leave their keys, while others refer to them, where a program has foreign keys switched off.
    case leftTargets = "left-targets"
    /// `UPDATE OR REPLACE` that gives a row the key of another one.
    case takenKeys = "taken-keys"
    case keyMoves = "key-moves"
    /// Values that are made from what is in the row, or in another one.
    case computedValues = "computed-values"
    case savepoints
    case rollbacks
    /// Tables that a program makes anew, with other rows or values, and writes to before Martlet has seen it.
    case rebuilds

    // Names and values.
    case oddNames = "odd-names"
    case extremeValues = "extreme-values"

    public static func < (a: SchemaFeature, b: SchemaFeature) -> Bool { a.rawValue < b.rawValue }

    /// Those that no schema shows.
    package static let ofStatements: Set<SchemaFeature> = [
        .danglingParts, .multipleRows, .upserts, .replace, .expressionReplace, .replacedTargets, .leftTargets,
        .takenKeys, .resolutions,
        .keyMoves,
        .computedValues,
        .savepoints, .rollbacks, .rebuilds, .extremeValues,
    ]

    /// Those that find known faults, with what is known. The only place where one is switched off.
    package static let off: [SchemaFeature: String] = [:]

    /// What is used unless somebody asks for something else.
    public static let standard = Set(allCases).subtracting(off.keys)
}

/// Lists of features as text.
public enum FeatureList {
    /// - Parameter text: names with commas; `all`, `default`, and names after a minus sign, which are taken out.
    /// - Returns: nil where there is no feature of a name.
    public static func features(_ text: String) -> Set<SchemaFeature>? {
        let words = text.split(separator: ",").map(String.init)
        var found: Set<SchemaFeature> = words.first?.hasPrefix("-") ?? false ? SchemaFeature.standard : []
        for word in words {
            switch word {
            case "all": found.formUnion(SchemaFeature.allCases)
            case "default": found.formUnion(SchemaFeature.standard)
            case "none": break
            default:
                let isOut = word.hasPrefix("-")
                guard let feature = SchemaFeature(rawValue: isOut ? String(word.dropFirst()) : word) else { return nil }
                if isOut { found.remove(feature) } else { found.insert(feature) }
            }
        }
        return found
    }

    public static func text(_ features: Set<SchemaFeature>) -> String {
        if features == SchemaFeature.standard { return "default" }
        let added = features.subtracting(SchemaFeature.standard).sorted().map(\.rawValue)
        let taken = SchemaFeature.standard.subtracting(features).sorted().map { "-" + $0.rawValue }
        let named = features.sorted().map(\.rawValue)
        guard !named.isEmpty else { return "none" }
        return (named.count < taken.count + added.count + 1 ? named : ["default"] + added + taken)
            .joined(separator: ",")
    }
}
