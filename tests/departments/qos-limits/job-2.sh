# jobgen slurm --site ./site.toml --nodes 4 --queue short --walltime 30m -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --mem=248G
#SBATCH --time=00:30:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=short
# jobgen: note: the launcher is srun, that of site site
