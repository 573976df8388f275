import ArgumentParser
import MartletAgent
import MartletSync

struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Manage the keys that encrypt and sign messages.",
        discussion: """
            Martlet creates key files that only their owner can read, and refuses files that others can read. No \
            command prints a secret. To rotate keys, `add` a key on all nodes, then `use` it on each. Remove the line \
            of an old key once no message on the topic is encrypted with it. Running agents pick up a changed key ring.
            """,
        subcommands: [Add.self, Use.self, List.self, Generate.self, Show.self])

    struct Ring: ParsableArguments {
        @Argument(help: "The key ring (security.keyRingFile).", completion: .file())
        var ring: String
        @Argument(help: "The key's ID: 1 to 64 letters, digits, dots, dashes and underscores.")
        var id: String
        @OptionGroup var output: JSONFlag
    }

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Add a random key to a key ring; creates the file if there is none.")
        @OptionGroup var ring: Ring
        @Flag(
            help: "Encrypt with this key from now on. All nodes must have the key by then. Implied for the first key.")
        var current = false

        func run() throws {
            try show(try KeyFiles.addKey(ring.id, makesCurrent: current, to: ring.ring), json: ring.output.json)
        }
    }

    struct Use: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "use", abstract: "Encrypt messages with another key of the ring from now on.")
        @OptionGroup var ring: Ring

        func run() throws { try show(try KeyFiles.useKey(ring.id, in: ring.ring), json: ring.output.json) }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the IDs of the keys in a ring, without the keys themselves.")
        @Argument(help: "The key ring.", completion: .file())
        var ring: String
        @OptionGroup var output: JSONFlag

        func run() throws { try show(try KeyFiles.ring(ring), json: output.json) }
    }

    struct Generate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "generate", abstract: "Create a node's signing key, and print its public key.",
            discussion: "The file must not exist yet. Enter the public key under security.origins on the other nodes.")
        @Argument(help: "The file (security.signingKeyFile).", completion: .file())
        var file: String

        func run() throws { print(try KeyFiles.generateSigningKey(file)) }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print the public key of a signing key.")
        @Argument(help: "The file.", completion: .file())
        var file: String

        func run() throws { print(try KeyFiles.publicKey(file)) }
    }
}

private func show(_ ring: KeyRing, json: Bool) throws {
    if json { return try JSON.print(["current": ring.current, "ids": ring.ids]) }
    for id in ring.ids { print(id == ring.current ? "\(id)  current" : id) }
}
