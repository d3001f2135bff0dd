package sluice.storage

import java.nio.charset.StandardCharsets.UTF_8

import io.delta.storage.HadoopFileSystemLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Delta's log in a store that creates a file only if there is none, by Hadoop's `createFile`.
  *
  * A file system that can't do so refuses the option. The error of who comes second is passed on.
  */
class ConditionalLogStore(conf: Configuration) extends HadoopFileSystemLogStore(conf) {

  override def write(
      path: Path,
      actions: java.util.Iterator[String],
      overwrite: java.lang.Boolean,
      hadoop: Configuration
  ): Unit = {
    val builder = path.getFileSystem(hadoop).createFile(path)
    builder.recursive()
    builder.overwrite(overwrite)
    if (!overwrite) builder.must("fs.option.create.conditional.overwrite", true)
    val stream = builder.build()
    while (actions.hasNext) stream.write((actions.next() + "\n").getBytes(UTF_8))
    stream.close() // only this writes the file; a stream that is not closed leaves none
  }

  override def isPartialWriteVisible(path: Path, hadoop: Configuration): java.lang.Boolean = false
}
